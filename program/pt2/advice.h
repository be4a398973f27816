#pragma once
// Traps of exporting: programs that are sound as files, but are probably not what their author meant.

#include "program/pt2/context.h"

namespace metaprof {

/// Warns of
/// * a loss without gradients, and parameters that are used only in regions without gradients: a reentrant
///   checkpoint in a default export turns its body and all that follows into such regions;
/// * disabled autocast regions: torch.autocast("cuda") disables itself on a machine without a GPU;
/// * an export inside torch.autocast: it leaves no region, only low-precision results of full-precision
/// calls.
void warn_of_traps(Pt2Context& context);

}  // namespace metaprof
