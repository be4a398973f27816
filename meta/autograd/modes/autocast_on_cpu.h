#pragma once
// What autocast does on the CPU, whose lists are others than those of records, which are the GPU's: layer norm, softmax and
// most functions of one number stay in lower precision, losses and decompositions do not
// (aten/src/ATen/autocast_mode.cpp, TORCH_LIBRARY_IMPL(aten, AutocastCPU); `torch._C._dispatch_dump` shows who is in it).

#include "meta/op/registry.h"

namespace metaprof {

/// The rule of the CPU's autocast for an operator; in-place variants have none. Looks the name up: who asks keeps it.
Autocast autocast_on_cpu(const Operator& op);

}  // namespace metaprof
