#pragma once
// Clipping of gradients (torch.nn.utils.clip_grad_norm_ and clip_grad_value_, PyTorch 2.11).

#include <span>

#include "meta/session/session.h"

namespace metaprof {

/// Scales all gradients so that their common norm is at most `largest`. Returns the norm, as the framework
/// does: how long the caller keeps it is the caller's business. Undefined if there are no gradients.
Tensor clip_gradient_norm(Session& session, std::span<const Tensor> parameters, double largest,
                          double norm_type = 2.0);

/// Cuts every element of every gradient to ± `largest`.
void clip_gradient_value(Session& session, std::span<const Tensor> parameters, double largest);

}  // namespace metaprof
