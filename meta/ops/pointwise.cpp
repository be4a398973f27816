#include "meta/ops/pointwise.h"

#include <fmt/format.h>

#include "core/error.h"

namespace metaprof {
namespace {

using Operands = SmallVector<const Tensor*, 4>;

Operands tensors_of(const Call& c) {
  Operands operands;
  for (const Value& value : c.arguments)
    if (value.is_tensor() && value.tensor().defined()) operands.push_back(&value.tensor());
  return operands;
}

Op elementwise_op(std::string_view schema, std::string_view summary, Meta meta, Derivatives derivatives,
                  std::vector<std::string_view> examples) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .kernels = {},
          .derivatives = std::move(derivatives),
          .flops = elementwise_flops<1>,
          .examples = std::move(examples),
          .facts = {.in_place_too = true}};
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

Op function_of_one(std::string_view schema, std::string_view summary, Meta meta, Derivatives derivatives,
                   std::vector<std::string_view> examples) {
  return elementwise_op(schema, summary, meta, std::move(derivatives), std::move(examples));
}

Op function_of_two(std::string_view schema, std::string_view summary, Meta meta, Derivatives derivatives,
                   std::vector<std::string_view> examples) {
  return elementwise_op(schema, summary, meta, std::move(derivatives), std::move(examples));
}

Op node_named(std::string_view node, Op op) {
  op.facts.node = node;
  return op;
}

Op only_functional(Op op) {
  op.facts.in_place_too = false;
  return op;
}

Gradients gradient_itself(Backward& b) { return {b.grad()}; }
Gradients zero_gradient(Backward& b) { return {zeros_like(b.grad())}; }
Derivatives flat() { return {{{"self"}, {}, zero_gradient}}; }
Gradients not_implemented(Backward& b) {
  fail("the framework has no derivative of {} for this argument", b.node.op.name);
}

}  // namespace metaprof
