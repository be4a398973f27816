#pragma once
// What cuDNN plans for one convolution on a described device.

#include <optional>
#include <string>

#include "meta/platform/cudnn/cudnn_backend.h"

namespace metaprof::cudnn {

/// Bytes of workspace of the engine that PyTorch takes with its default settings (TF32 allowed, nothing
/// deterministic asked): the first that the heuristics give, by the configuration, without building the plan.
/// Nothing if there is none. `question` is to_text(ConvolutionPlan) (meta/platform/workspace_question.h), `device` a
/// description (device_description.h). Errors: a question that cannot be read, the library refuses.
std::optional<int64_t> convolution_workspace(const Library& library, const std::string& question,
                                             const std::string& device);

}  // namespace metaprof::cudnn
