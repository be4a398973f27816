// exp of a matrix: Taylor's polynomials of at most degree 18 of the matrix divided by a power of two, squared as often
// (native/LinearAlgebra.cpp, mexp; FunctionsManual.cpp, differential_analytic_matrix_function; recorded:
// `opinfo/matrix_exp`, whose operators and, up to the first number that is read, blocks these are).

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/sizes_by_data.h"

namespace metaprof {
namespace {

void matrix_exp_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  check_square(c, self);
  c.output(self.sizes(), self.dtype());
}

Tensor norms_of(const Tensor& a) {
  const Tensor sizes = abs(a);
  const Tensor totals = sum(sizes, Sizes{-2}, false);
  return call_all<"max.dim">(session_of(a), totals, -1, false)[0];
}

// compute_T18: powers of the matrix, and combinations of these by 5 × 5 numbers, one of which becomes the result.
Tensor polynomial(Session& s, const Tensor& a) {
  Sizes five = a.sizes();
  five.insert(0, 5);
  const Tensor factors = s.empty(Sizes{5, 5}, a.dtype(), a.device());
  const Tensor powers = s.empty(five, a.dtype(), a.device());
  { const Tensor one = s.empty(Sizes{1}, a.dtype(), a.device()), identity = zeros_like(a); }
  return zeros_of(a, five);
}

// How often each matrix has to be squared.
Tensor counts_of_squares(Session& s, const Tensor& norms) {
  const Tensor shares = norms / Number(3.0), logarithms = call<"log2">(s, shares);
  const Tensor whole = call<"ceil">(s, logarithms);
  return call<"clamp">(s, whole, 0);
}

Tensor powers_of_two(Session& s, const Tensor& counts) {
  const Tensor less = neg(counts);
  Tensor powers = empty_like(less);
  const Tensor two = s.empty({}, DType::i64, counts.device());
  return powers;
}

// compute_T18_scale_square: matrices are sorted by how often they are squared, which is data; a square and what it is of
// are there at a time.
void scale_and_square(Session& s, const Tensor& a, const Tensor& norms) {
  const Tensor counts = counts_of_squares(s, norms), factors = powers_of_two(s, counts);
  const Tensor scaled = a * unsqueeze(unsqueeze(factors, -1), -1);
  const Tensor made = polynomial(s, scaled);
  const Results sorted = call_all<"sort">(s, counts);
  const Tensor whole = to(sorted[0], DType::i64);
  const Results groups = call_all<"unique_consecutive">(s, whole, true, true);
  const Tensor squared = index_select(select(made, 0, 1), 0, sorted[1]);
  const Tensor next = empty_like(squared);
}

// Norms decide on the host which polynomial one matrix gets; several get the one of degree 18.
void matrix_exp_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  Session& s = c.session;
  const int64_t n = self.size(-1), matrices = numel(batch_of(self));
  if (self.numel() == 0 || n == 1) return c.allocate(0);
  const Tensor a = call<"reshape">(s, self, Sizes{matrices, n, n});
  const Tensor norms = norms_of(a);
  if (matrices == 1) c.allocate(0);
  note_assumed(c);
  scale_and_square(s, a, norms);
  c.allocate(0);
}

// The gradient stands right of the matrix in one of twice the size, whose exponential has it there.
Gradients matrix_exp_gradient(Backward& b) {
  const Tensor& self = b("self");
  const int64_t n = self.size(-1);
  const Tensor turned = mH(self);
  Sizes sizes = self.sizes();
  sizes[sizes.size() - 1] = sizes[sizes.size() - 2] = 2 * n;
  const Tensor both = zeros_of(b.grad(), sizes);
  const auto part = [&](const Tensor& of, int64_t row, int64_t column) {
    return narrow(narrow(of, -2, row, n), -1, column, n);
  };
  copy_(part(both, 0, 0), turned);
  copy_(part(both, n, n), turned);
  copy_(part(both, 0, n), b.grad());
  return {part(call<"linalg_matrix_exp">(b.session, both), 0, n)};
}

constexpr Op kMatrixExponential[] = {
    {.schema = "linalg_matrix_exp(Tensor self) -> Tensor",
     .summary = "exp of a matrix",
     .meta = matrix_exp_meta,
     .host_code = {{DeviceType::cuda, matrix_exp_cuda}},
     .derivatives = {{{"self"}, {"self"}, matrix_exp_gradient}},
     .flops = cubic_flops<10>,  // five products of the polynomial; squares are as many as the data asks for
     .examples = {"f32[3,3]", "f32[2,3,3]"},
     .facts = {.host_reads = true}},
    composite_of("matrix_exp(Tensor self) -> Tensor", "exp of a matrix",
                 [](Call& c) { c.result(call<"linalg_matrix_exp">(c.session, c.tensor("self"))); },
                 {"f32[3,3]"})};

}  // namespace

Tables matrix_exponential_operators() {
  static constexpr Records tables[] = {kMatrixExponential};
  return tables;
}

}  // namespace metaprof
