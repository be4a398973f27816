// Covariance and correlation of rows (aten/src/ATen/native/Correlation.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// Whether a condition holds is read back from the device (at::is_scalar_tensor_true).
void read_back(const Tensor& condition) {
  const Tensor one = call<"new_ones">(session_of(condition), condition, Sizes{}, DType::b8);
  call_all<"equal">(session_of(condition), condition, one);
}

void check_not_negative(Call& c, const Tensor& weights, const Tensor& rows) {
  if (weights.dim() != 1 || weights.numel() != rows.size(1))
    c.error(fmt::format("expects a weight for each of {} columns, got {}", rows.size(1), describe(weights)));
  const Tensor smallest = call<"min">(c.session, weights), condition = ge(smallest, 0);
  read_back(condition);
}

// How often a column counts, times how much; undefined: all alike.
Tensor column_weights(Call& c, const Tensor& rows) {
  const Tensor &often = c.tensor("fweights"), &much = c.tensor("aweights");
  if (often.defined()) check_not_negative(c, often, rows);
  if (much.defined()) check_not_negative(c, much, rows);
  if (!often.defined() || !much.defined()) return often.defined() ? often : much;
  return often * much;
}

Tensor whole_number(const Tensor& like, int64_t number) {
  return call<"scalar_tensor">(session_of(like), number, DType::i64, Value(), like.device());
}

// What products of differences are divided by: the sum of weights less what the correction takes away.
Tensor divisor(Call& c, const Tensor& rows, const Tensor& weights, const Tensor& total) {
  const int64_t correction = c.integer("correction");
  if (!weights.defined()) return whole_number(rows, rows.size(1) - correction);
  if (!c.given("aweights") || correction == 0) return correction == 0 ? total : total - correction;
  const Tensor squares = weights * c.tensor("aweights"), sum_of_squares = sum(squares);
  const Tensor lost = sum_of_squares * correction, share = lost / total;
  return total - share;
}

Tensor product_with_itself(const Tensor& rows, const Tensor& weights) {
  const Tensor columns = t(weights.defined() ? rows * weights : rows);
  return mm(rows, is_complex(rows.dtype()) ? call<"conj">(session_of(rows), columns) : columns);
}

void covariance_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() > 2) c.error(fmt::format("expects at most two dimensions, got {}", describe(self)));
  Tensor rows = self.dim() < 2 ? view(self, Sizes{1, -1}) : self;
  const Tensor weights = column_weights(c, rows);
  const Tensor total = weights.defined() ? sum(weights) : whole_number(rows, rows.size(1));
  if (weights.defined()) read_back(ne(total, 0));
  Tensor average;
  {
    const Tensor weighted = weights.defined() ? rows * weights : rows;
    const Tensor sums = sum(weighted, Sizes{1}, false);
    average = sums / total;
  }
  const Tensor factor = divisor(c, rows, weights, total);
  read_back(le(factor, 0));
  rows = rows - unsqueeze(average, 1);
  const Tensor products = product_with_itself(rows, weights);
  const Tensor quotient = call<"true_divide.Tensor">(c.session, products, factor);
  c.result(call<"squeeze">(c.session, quotient));
}

// Covariances over both deviations, kept within what rounding may leave.
void correlation_body(Call& c) {
  const Tensor covariance = call<"cov">(c.session, c["self"]);
  if (covariance.dim() == 0) return c.result(covariance / covariance);
  const Tensor variances = call<"diagonal">(c.session, covariance), deviations = sqrt(variances);
  const Tensor by_row = covariance / view(deviations, Sizes{-1, 1});
  const Tensor by_both = by_row / view(deviations, Sizes{1, -1});
  if (is_complex(by_both.dtype())) c.error("correlations of complex numbers are not modelled");
  c.result(call<"clip">(c.session, by_both, -1, 1));
}

constexpr Op kCovariance[] = {
    composite_of(
        "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        "covariances of rows", covariance_body, {"f32[3,5]", "f32[3,5] 0 i64[5] f32[5]"},
        {.reads_data = true}),
    composite_of("corrcoef(Tensor self) -> Tensor", "correlations of rows", correlation_body,
                 {"f32[3,5]", "f32[5]"}, {.reads_data = true})};

}  // namespace

Tables covariance_operators() {
  static constexpr Records tables[] = {kCovariance};
  return tables;
}

}  // namespace metaprof
