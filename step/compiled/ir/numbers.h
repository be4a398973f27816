#pragma once
// Arithmetic on numbers, and what tensors and lists say of their sizes: what decides control flow. These have no
// tensors as results, so that they are no operators of the registry. Names are the framework's.

#include <span>
#include <string_view>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

struct NumberOp {
  std::string_view name;  ///< "aten::lt.int"
  size_t arguments;
  Type::Kind result;
  Constant (*evaluate)(std::span<const Constant> arguments);
  bool optional = false;  ///< the result may be None

  Type type() const {
    Type type = result;
    type.optional = optional;
    return type;
  }
};

/// Null if there is none of this name.
const NumberOp* number_op(std::string_view name);

}  // namespace metaprof::ir
