#pragma once
// What the plan of an operation graph takes.

#include <optional>
#include <string>

#include "capture/emulator/cudnn/descriptor.h"

namespace metaprof::emulator::cudnn {

/// What the real cuDNN answers for the described device, asked through the helper program that METAPROF_EMULATOR_CUDNN
/// names; 0 for what is no plain convolution, where there is no helper, and where it does not answer.
int64_t plan_workspace_of(const Node& graph);

/// The same of the plan that is tried after memory ran out for the first `skipped`; nothing: there is none.
std::optional<int64_t> workspace_after(const std::string& question, int skipped);

/// With what it reads, writes and computes; of what is no convolution, what it reads and writes.
Plan plan_of(const Node& graph);

/// A convolution in the helper's words (meta/platform/cudnn/main.cpp); empty if the graph is none, or one that those words cannot
/// say.
std::string question_about(const Node& graph);

}  // namespace metaprof::emulator::cudnn
