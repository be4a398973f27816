// Derivatives of means, variances and their like.

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

Term expanded(Term tensor, Term size) { return tensor.formula->call("aten::expand", {tensor, size}); }
Term as_dtype(Term tensor, Term dtype) { return tensor.formula->call("aten::to.dtype", {tensor, dtype}); }

// The dimensions that were reduced, there again with a size of 1: in order, as the framework's language has it.
Term with_reduced(Term tensor, const Sizes& dims, int64_t rank) {
  Formula& f = *tensor.formula;
  std::vector<bool> reduced(size_t(rank), false);
  for (const int64_t dim : dims) reduced[size_t(wrap_dim(dim, rank))] = true;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (reduced[size_t(dim)]) tensor = f.call("aten::unsqueeze", {tensor, f.constant(dim)});
  return tensor;
}

// The product of the sizes of dimensions: how many elements became one.
Term count_of(Term size, const Sizes& dims) {
  Formula& f = *size.formula;
  Term count = f.constant(1);
  for (const int64_t dim : dims)
    count = f.number("aten::mul.int", {count, f.number("aten::__getitem__.t", {size, f.constant(dim)})});
  return count;
}

int64_t rank_of(Formula& f) { return *f.self().value->type.tensor.rank; }

bool has_known_rank(const Node& call) { return call.input(0)->type.tensor.rank.has_value(); }
bool has_known_dims(const Node& call) {
  return has_known_rank(call) && call.has_constant(1) && !call.constant(1).is_none() && call.has_constant(2);
}

void mean(Formula& f) {
  const Term size = f.size_of(f.self());
  const Term count = f.forward_number("aten::numel", {f.self()});
  const Term dtype = f.forward_number("prim::dtype", {f.self()});
  f.give("self", as_dtype(expanded(f.gradient(), size), dtype) / count);
}

void mean_of_dims(Formula& f) {
  const Sizes& dims = f.value_of("dim").integers();
  const Term size = f.size_of(f.self());
  const Term dtype = f.forward_number("prim::dtype", {f.self()});
  Term gradient = f.gradient();
  if (!f.value_of("keepdim").boolean() && rank_of(f) > 0)
    gradient = dims.size() == 1 ? f.call("aten::unsqueeze", {gradient, f.constant(dims[0])})
                                : with_reduced(gradient, dims, rank_of(f));
  const Term whole = as_dtype(expanded(gradient, size), dtype);
  f.give("self", whole / count_of(size, dims));
}

void log_sum_exp(Formula& f) {
  Term gradient = f.gradient(), result = f.result();
  if (!f.value_of("keepdim").boolean() && rank_of(f) > 0) {
    gradient = with_reduced(gradient, f.value_of("dim").integers(), rank_of(f));
    result = with_reduced(result, f.value_of("dim").integers(), rank_of(f));
  }
  f.give("self", gradient * f.call("aten::exp", {f.self() - result}));
}

// --- Variances. `correction`: what is subtracted from the number of elements.

Term slope_of_variance(Formula& f, Term gradient, const Constant& correction) {
  const Term centered = f.self() - f.call("aten::mean", {f.self()});
  const Term count = f.number("aten::numel", {f.self()});
  return gradient * centered * 2.0 / f.number("aten::sub.int", {count, f.constant(correction)});
}

Term slope_of_variance(Formula& f, Term gradient, const Sizes& dims, const Constant& correction, bool keeps) {
  if (rank_of(f) == 0) return slope_of_variance(f, gradient, correction);
  const Term size = f.number("aten::size", {f.self()});
  if (!keeps && rank_of(f) > 1) gradient = with_reduced(gradient, dims, rank_of(f));
  const Term centered = f.self() - f.call("aten::mean.dim", {f.self(), f.constant(dims), f.constant(true)});
  const Term count = f.number("aten::sub.int", {count_of(size, dims), f.constant(correction)});
  return gradient * centered * 2.0 / count;
}

Term of_deviation(Formula& f) { return f.gradient() / (f.result() * 2); }

void give_of_all(Formula& f, Term gradient) {
  f.give("self", slope_of_variance(f, gradient, f.value_of("unbiased").boolean() ? 1 : 0));
}
void give_of_dims(Formula& f, Term gradient) {
  f.give("self",
         slope_of_variance(f, gradient, f.value_of("dim").integers(),
                           f.value_of("unbiased").boolean() ? 1 : 0, f.value_of("keepdim").boolean()));
}
void give_corrected(Formula& f, Term gradient) {
  const Constant correction = f.is_none("correction") ? Constant(1) : f.value_of("correction");
  if (f.is_none("dim")) return f.give("self", slope_of_variance(f, gradient, correction));
  f.give("self", slope_of_variance(f, gradient, f.value_of("dim").integers(), correction,
                                   f.value_of("keepdim").boolean()));
}

void variance(Formula& f) { give_of_all(f, f.gradient()); }
void variance_of_dims(Formula& f) { give_of_dims(f, f.gradient()); }
void variance_corrected(Formula& f) { give_corrected(f, f.gradient()); }
void deviation(Formula& f) { give_of_all(f, of_deviation(f)); }
void deviation_of_dims(Formula& f) { give_of_dims(f, of_deviation(f)); }
void deviation_corrected(Formula& f) { give_corrected(f, of_deviation(f)); }

bool has_constants(const Node& call) {
  for (size_t i = 1; i < call.inputs.size(); ++i)
    if (!call.has_constant(i)) return false;
  return has_known_rank(call);
}

constexpr FormulaRow kReductions[] = {
    {"aten::mean", mean},
    {"aten::mean.dim", mean_of_dims, has_known_dims, kCallsFunctions},
    {"aten::logsumexp", log_sum_exp, has_known_dims, kCallsFunctions},
    {"aten::var", variance, has_constants, kCallsFunctions},
    {"aten::var.dim", variance_of_dims, has_constants, kCallsFunctions},
    {"aten::var.correction", variance_corrected, has_constants, kCallsFunctions},
    {"aten::std", deviation, has_constants, kCallsFunctions},
    {"aten::std.dim", deviation_of_dims, has_constants, kCallsFunctions},
    {"aten::std.correction", deviation_corrected, has_constants, kCallsFunctions},
};

}  // namespace

std::span<const FormulaRow> reduction_formulas() { return kReductions; }

}  // namespace metaprof::ir
