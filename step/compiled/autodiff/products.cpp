// Derivatives of matrix products.

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

Term transposed(Term matrix) { return matrix.formula->call("aten::t", {matrix}); }
Term mm(Term a, Term b) { return a.formula->call("aten::mm", {a, b}); }
Term bmm(Term a, Term b) { return a.formula->call("aten::bmm", {a, b}); }
Term matmul(Term a, Term b) { return a.formula->call("aten::matmul", {a, b}); }

void matrix_product(Formula& f) {
  f.give("self", mm(f.gradient(), transposed(f.input("mat2"))));
  f.give("mat2", mm(transposed(f.self()), f.gradient()));
}

Term batch_transposed(Term matrices) {
  Formula& f = *matrices.formula;
  return f.call("aten::transpose.int", {matrices, f.constant(1), f.constant(2)});
}

void batched_product(Formula& f) {
  f.give("self", bmm(f.gradient(), batch_transposed(f.input("mat2"))));
  f.give("mat2", bmm(batch_transposed(f.self()), f.gradient()));
}

void product_with_vector(Formula& f) {
  f.give("self", f.call("aten::ger", {f.gradient(), f.input("vec")}));
  f.give("vec", f.call("aten::mv", {transposed(f.self()), f.gradient()}));
}

void dot_product(Formula& f) {
  f.give("self", f.gradient() * f.input("tensor"));
  f.give("tensor", f.gradient() * f.self());
}

void product_and_sum(Formula& f) {
  const Term size = f.size_if_not_equal(f.self());
  f.give("self", summed(f.gradient() * f.input("beta"), size));
  f.give("mat1", mm(f.gradient(), transposed(f.input("mat2"))) * f.input("alpha"));
  f.give("mat2", mm(transposed(f.input("mat1")), f.gradient()) * f.input("alpha"));
}

// Rows: what stands before the last dimension, flattened.
Term rows(Term tensor, Term last) {
  Formula& f = *tensor.formula;
  return f.call("aten::reshape", {tensor, f.list({f.constant(-1), last}, Type::Kind::integers)});
}

Term element(Term list, int64_t i) {
  return list.formula->number("aten::__getitem__.t", {list, list.formula->constant(i)});
}

// The bias is kept for its size alone.
void linear(Formula& f) {
  if (!f.is_none("bias")) f.give("bias", summed(f.gradient(), f.number("aten::size", {f.input("bias")})));
  const Term weight = f.input("weight");
  const Term size = f.number("aten::size", {weight});
  f.give("input", matmul(f.gradient(), weight));
  const Term gradient_rows = transposed(rows(f.gradient(), element(size, 0)));
  f.give("weight", matmul(gradient_rows, rows(f.input("input"), element(size, 1))));
}

bool has_known_bias(const Node& call) { return call.has_constant(2) || !call.input(2)->type.optional; }

// --- matmul: what its derivative calls follows from numbers of dimensions.

int64_t rank(Term term) { return *term.value->type.tensor.rank; }

int64_t rank_of_product(int64_t a, int64_t b) {
  if (a == 1 && b == 1) return 0;
  if (a == 1) return b - 1;
  return b == 1 ? a - 1 : std::max(a, b);
}

Term with_last_two_exchanged(Term matrix, int64_t dims) {
  Formula& f = *matrix.formula;
  if (dims < 2) return matrix;
  if (dims == 2) return transposed(matrix);
  Sizes order;
  for (int64_t i = 0; i < dims; ++i) order.push_back(i);
  std::swap(order[size_t(dims - 1)], order[size_t(dims - 2)]);
  return f.call("aten::permute", {matrix, f.constant(order)});
}

Term unsqueezed(Term tensor, int64_t dim) {
  return tensor.formula->call("aten::unsqueeze", {tensor, tensor.formula->constant(dim)});
}
Term squeezed(Term tensor, int64_t dim) {
  return tensor.formula->call("aten::squeeze.dim", {tensor, tensor.formula->constant(dim)});
}

// Both sides as matrices of all rows, so that no batch of products is made only to be summed.
Term product_of_rows(Term a, int64_t a_dims, Term b) {
  Formula& f = *a.formula;
  const Term left = with_last_two_exchanged(a, a_dims);
  const auto last = [&](Term tensor) { return f.number("aten::size.int", {tensor, f.constant(-1)}); };
  const Term left_rows = rows(left, last(left));
  return mm(transposed(left_rows), rows(b, last(b)));
}

Term product_of_dims(Term a, int64_t a_dims, Term b, int64_t b_dims, int64_t dims) {
  if (dims == 2 && a_dims == b_dims && a_dims >= 3) return product_of_rows(a, a_dims, b);
  if (dims == 1 && a_dims - b_dims == 1 && a_dims >= 3)
    return squeezed(product_of_rows(a, a_dims, unsqueezed(b, -1)), -1);
  if (a_dims + b_dims == dims) return matmul(unsqueezed(a, a_dims), unsqueezed(b, b_dims == 1 ? 0 : -2));
  if (dims == a_dims - b_dims) return squeezed(matmul(a, unsqueezed(b, b_dims)), -1);
  if (dims == b_dims - a_dims) return squeezed(matmul(unsqueezed(a, -2), b), -2);
  return matmul(a, b);
}

void any_product(Formula& f) {
  const Term self = f.self(), other = f.input("other");
  const int64_t self_dims = rank(self), other_dims = rank(other);
  const int64_t dims = rank_of_product(self_dims, other_dims);
  const Term self_size = f.number("aten::size", {self}), other_size = f.number("aten::size", {other});
  f.give("self", summed(product_of_dims(f.gradient(), dims, with_last_two_exchanged(other, other_dims),
                                        other_dims, self_dims),
                        self_size));
  f.give("other", summed(product_of_dims(with_last_two_exchanged(self, self_dims), self_dims, f.gradient(),
                                         dims, other_dims),
                         other_size));
}

bool has_known_ranks(const Node& call) {
  return call.input(0)->type.tensor.rank && call.input(1)->type.tensor.rank;
}

constexpr FormulaRow kProducts[] = {
    {"aten::mm", matrix_product, nullptr, kCallsFunctions},
    {"aten::bmm", batched_product, nullptr, kCallsFunctions},
    {"aten::mv", product_with_vector},
    {"aten::dot", dot_product},
    {"aten::addmm", product_and_sum},
    {"aten::linear", linear, has_known_bias},
    {"aten::matmul", any_product, has_known_ranks, kCallsFunctions},
};

}  // namespace

std::span<const FormulaRow> product_formulas() { return kProducts; }

}  // namespace metaprof::ir
