#pragma once
// Calls of operators by the name that code gives, "torch.add", which stands for every overload of aten::add.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/nn/recording.h"
#include "program/torchscript/item.h"

namespace metaprof::script {

/// An argument of a call; `name` is empty where it is passed by its place.
struct GivenArgument {
  std::string name;
  Item item;
};

/// Calls the first overload that takes the arguments as they are, as torch.jit chooses
/// (torch/csrc/jit/frontend/schema_matching.cpp), and writes the call down. Several results are a tuple. Errors: there is
/// no such operator, or none that takes these arguments; it returns the value of a tensor; what the operator refuses.
Item call_operator(nn::Recording& recording, std::string_view name, std::span<const GivenArgument> given);

}  // namespace metaprof::script
