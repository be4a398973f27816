#pragma once
// Elementwise operators differ in name, dtype and derivative; the rest of their records is made here.

#include "meta/autograd/backward.h"
#include "meta/ops/arithmetic.h"
#include "meta/ops/iterator.h"

namespace metaprof {

// How the result follows from the arguments: broadcast over all tensor arguments, in the dtype that …
void promoted_meta(Call& c);               ///< … the tensors are promoted to
void promoted_with_numbers_meta(Call& c);  ///< … tensors and plain numbers are promoted to
void promoted_floating_meta(Call& c);      ///< … the tensors are promoted to, integers becoming floating
void same_dtype_meta(Call& c);             ///< … the first tensor has
void boolean_meta(Call& c);                ///< … is bool
void self_meta(Call& c);                   ///< the first argument itself (operators that write to it)

/// A function of one tensor; `name_` exists, too.
Op function_of_one(std::string_view schema, std::string_view summary, Meta meta, Derivatives derivatives,
                   std::vector<std::string_view> examples = {"f32[2,3]", "i64[2]"});
/// A function of two tensors; `name_` exists, too.
Op function_of_two(std::string_view schema, std::string_view summary, Meta meta, Derivatives derivatives,
                   std::vector<std::string_view> examples = {"f32[2,3] f32[3]", "f32[2,3] f32[]"});
/// The same record with another name for its node, or without `name_`.
Op node_named(std::string_view node, Op op);
Op only_functional(Op op);

// Derivatives that many have.
Gradients gradient_itself(Backward& b);
Gradients zero_gradient(Backward& b);
/// A function with steps only: zeros.
Derivatives flat();
/// The framework has a node, but no formula: backward is an Error.
Gradients not_implemented(Backward& b);

}  // namespace metaprof
