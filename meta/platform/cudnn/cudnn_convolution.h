#pragma once
// What cuDNN plans for one convolution on a described device.

#include <optional>
#include <string>

#include "meta/platform/cudnn/cudnn_backend.h"
#include "meta/platform/workspace_question.h"

namespace metaprof::cudnn {

/// The operation alone, as a graph whose tensors are called 'x', 'w' and 'y'. `handle`: of a device that is here; null: the
/// device comes with the heuristics.
Descriptor operation_graph(Descriptors& made, const ConvolutionQuestion& question, void* handle);

/// Whether PyTorch leaves this engine's configuration out (aten/src/ATen/native/cudnn/Conv_v8.cpp).
bool is_left_out(Descriptors& made, Descriptor configuration, const ConvolutionQuestion& question);

/// Bytes of workspace of the engine that PyTorch takes with its default settings (TF32 allowed, nothing
/// deterministic asked): the first that the heuristics give, by the configuration, without building the plan.
/// `skipped` > 0: memory ran out for that one. PyTorch then tries those that follow in the heuristics' order, of which only one
/// with less workspace can succeed: of these the `skipped`-th. Nothing if there is none. `question` is to_text(ConvolutionPlan) (meta/platform/workspace_question.h), `device` a
/// description (device_description.h). Errors: a question that cannot be read, the library refuses.
std::optional<int64_t> convolution_workspace(const Library& library, const std::string& question,
                                             const std::string& device, int skipped = 0);

}  // namespace metaprof::cudnn
