#pragma once
// Elementwise operators differ in name, dtype and derivative; the rest of their records is made here.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {

// How the result follows from the arguments: broadcast over all tensor arguments, in the dtype that …
void promoted_meta(Call& c);               ///< … the tensors are promoted to
void promoted_with_numbers_meta(Call& c);  ///< … tensors and plain numbers are promoted to
void promoted_floating_meta(Call& c);      ///< … the tensors are promoted to, integers becoming floating
void same_dtype_meta(Call& c);             ///< … the first tensor has
void boolean_meta(Call& c);                ///< … is bool
void self_meta(Call& c);                   ///< the first argument itself (operators that write to it)

/// A function of one tensor; `name_` exists, too.
constexpr Op function_of_one(std::string_view schema, std::string_view summary, Meta meta,
                             const Derivatives& derivatives,
                             const Examples& examples = {"f32[2,3]", "i64[2]"}) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .derivatives = derivatives,
          .flops = elementwise_flops<1>,
          .examples = examples,
          .facts = {.in_place_too = true}};
}
/// A function of two tensors; `name_` exists, too.
constexpr Op function_of_two(std::string_view schema, std::string_view summary, Meta meta,
                             const Derivatives& derivatives,
                             const Examples& examples = {"f32[2,3] f32[3]", "f32[2,3] f32[]"}) {
  return function_of_one(schema, summary, meta, derivatives, examples);
}
/// The same record, whose result is self.
constexpr Op writing_self(const Op& op) { return with_meta(self_meta, op); }
/// The in-place variant of a record where it has another schema than `name_`.
constexpr Op in_place_as(std::string_view schema, Op op) {
  op.schema = schema;
  return writing_self(op);
}

// Derivatives that many have.
Gradients gradient_itself(Backward& b);
Gradients zero_gradient(Backward& b);
/// A function with steps only: zeros.
constexpr Derivatives flat() { return {{{"self"}, {}, zero_gradient}}; }
/// The framework has a node, but no formula: backward is an Error.
Gradients not_implemented(Backward& b);

}  // namespace metaprof
