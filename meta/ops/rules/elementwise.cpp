#include "meta/ops/rules/elementwise.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/autograd/engine/op_node.h"

namespace metaprof {
namespace {

using Operands = SmallVector<const Tensor*, 4>;

Operands tensors_of(const Call& c) {
  Operands operands;
  for (const Value& value : c.arguments)
    if (value.is_tensor() && value.tensor().defined()) operands.push_back(&value.tensor());
  return operands;
}

}  // namespace

void promoted_meta(Call& c) {
  const Operands operands = tensors_of(c);
  elementwise(c, operands, result_type(operands));
}
void promoted_with_numbers_meta(Call& c) { elementwise(c, tensors_of(c), result_type(c.arguments)); }
void promoted_floating_meta(Call& c) {
  const Operands operands = tensors_of(c);
  elementwise(c, operands, to_floating(result_type(operands)));
}
void same_dtype_meta(Call& c) {
  const Operands operands = tensors_of(c);
  elementwise(c, operands, operands[0]->dtype());
}
void boolean_meta(Call& c) { elementwise(c, tensors_of(c), DType::b8); }
void self_meta(Call& c) { c.result(c.arguments[0]); }

Gradients gradient_itself(Backward& b) { return {b.grad()}; }
Gradients zero_gradient(Backward& b) { return {zeros_like(b.grad())}; }
Gradients not_implemented(Backward& b) {
  fail("the framework has no derivative of {} for this argument", b.node.op.name);
}

}  // namespace metaprof
