// Derivatives of what moves elements and changes dtypes, without arithmetic.

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

// Back to the argument's sizes, which the forward notes.
void reshape_back(Formula& f) {
  const Term size = f.size_of(f.self());
  f.give("self", f.call("aten::reshape", {f.gradient(), size}));
}

void transpose(Formula& f) { f.give("self", f.call("aten::t", {f.gradient()})); }
void transpose_dims(Formula& f) {
  f.give("self", f.call("aten::transpose.int", {f.gradient(), f.input("dim0"), f.input("dim1")}));
}

bool has_constant_dims(const Node& call) { return call.has_constant(1); }

void permute(Formula& f) {
  const Sizes& dims = f.value_of("dims").integers();
  Sizes back(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i)
    back[size_t(wrap_dim(dims[i], static_cast<int64_t>(dims.size())))] = static_cast<int64_t>(i);
  f.give("self", f.call("aten::permute", {f.gradient(), f.constant(back)}));
}

void expand(Formula& f) {
  const Term size = f.size_if_not_equal(f.self());
  f.give("self", f.call("aten::_grad_sum_to_size", {f.gradient(), size}));
}

bool is_constant_expansion(const Node& call) { return call.has_constant(1) && call.has_constant(2); }

// Of the sum to sizes: nothing was summed where they were equal.
void sum_to_size(Formula& f) {
  const Term size = f.size_of(f.self());
  f.give("self", f.call("aten::expand", {f.gradient(), size}));
}

void unsqueeze(Formula& f) { f.give("self", f.call("aten::squeeze.dim", {f.gradient(), f.input("dim")})); }

void split(Formula& f) { f.give("self", f.call("aten::cat", {f.gradient(), f.input("dim")})); }
void unbind(Formula& f) { f.give("self", f.call("aten::stack", {f.gradient(), f.input("dim")})); }

void stack(Formula& f) { f.give("tensors", f.call("aten::unbind.int", {f.gradient(), f.input("dim")})); }

// The framework's formula keeps the list for its lengths.
void concatenate(Formula& f) {
  const Term lengths = f.number("prim::lengths", {f.input("tensors"), f.input("dim")});
  f.give("tensors", f.call("aten::split_with_sizes", {f.gradient(), lengths, f.input("dim")}));
}

void index(Formula& f) {
  const Term zeros = f.call("aten::zeros_like", {f.self()});
  f.give("self", f.call("aten::index_put_", {zeros, f.input("indices"), f.gradient(), f.constant(true)}));
}

// --- Dtypes

// `to` has none: PyTorch's formulas are of schemas without memory_format, which no call has.
void type_as(Formula& f) { f.give("self", f.call("aten::type_as", {f.gradient(), f.self()})); }

constexpr FormulaRow kGeometry[] = {
    {"aten::t", transpose},
    {"aten::transpose.int", transpose_dims},
    {"aten::permute", permute, has_constant_dims, kCallsFunctions},
    {"aten::reshape", reshape_back},
    {"aten::view", reshape_back},
    {"aten::expand", expand, is_constant_expansion},
    {"aten::expand_as", expand},
    {"aten::_grad_sum_to_size", sum_to_size},
    {"aten::squeeze", reshape_back, nullptr, kCallsFunctions},
    {"aten::squeeze.dim", reshape_back, nullptr, kCallsFunctions},
    {"aten::unsqueeze", unsqueeze},
    {"aten::contiguous", pass_to_self},
    {"aten::cat", concatenate},
    {"aten::stack", stack},
    {"aten::split.Tensor", split},
    {"aten::split_with_sizes", split},
    {"aten::unbind.int", unbind},
    {"aten::index.Tensor", index},
    {"aten::type_as", type_as},
    {"aten::ones_like", no_gradient},
    {"aten::full_like", no_gradient},
    {"aten::nonzero", no_gradient},
};

}  // namespace

std::span<const FormulaRow> geometry_formulas() { return kGeometry; }

}  // namespace metaprof::ir
