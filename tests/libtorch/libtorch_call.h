#pragma once
// Calls libtorch's operator of the same name, through its boxed dispatcher and below its autograd. Arguments
// are matched by name, since schemas gain arguments over the versions.

#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

#include "meta/op/registry.h"

namespace metaprof {

/// An argument as libtorch takes it. `tensor` makes tensors of ours into libtorch's.
c10::IValue to_ivalue(const Argument& argument, const Value& value,
                      const std::function<at::Tensor(const Tensor&)>& tensor);

/// Results of libtorch's operator. `arguments`: one per argument of our schema. A NoNumbers says why there
/// are none: libtorch has no such operator or argument, or refused the call.
std::vector<c10::IValue> call_libtorch(const Operator& op, const std::vector<c10::IValue>& arguments);
/// The same with libtorch's own autograd, and with its own exceptions (c10::Error).
std::vector<c10::IValue> call_libtorch_with_autograd(const Operator& op,
                                                     const std::vector<c10::IValue>& arguments);

/// An operator that libtorch 1.13 lacks, computed with operators that it has; null if there is no such
/// recipe. Takes one value per argument of our schema.
using Recipe = std::vector<c10::IValue> (*)(const Operator& op, const std::vector<c10::IValue>& arguments);
Recipe recipe_for(std::string_view name);

}  // namespace metaprof
