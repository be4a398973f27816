// Norms and powers of matrices, and what is composed of products, solutions and singular values
// (aten/src/ATen/native/LinearAlgebra.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

Sizes two_dims(const Call& c, const Tensor& a, const Value& dims) {
  Sizes out;
  for (int64_t d : dims.integers()) out.push_back(wrap_dim(d, a.dim()));
  if (out.size() != 2 || out[0] == out[1]) c.error("expects two different dimensions");
  return out;
}

// The order of dimensions with two of them moved to the end.
Sizes order_with_last(int64_t count, const Sizes& dims) {
  Sizes order;
  for (int64_t d = 0; d < count; ++d)
    if (d != dims[0] && d != dims[1]) order.push_back(d);
  order.append(dims.begin(), dims.end());
  return order;
}
Tensor at_the_end(const Tensor& a, const Sizes& dims) { return permute(a, order_with_last(a.dim(), dims)); }

// A result whose last dimension was kept: both reduced dimensions go back to where they were.
Tensor with_dims_kept(const Tensor& result, const Sizes& dims) {
  const Tensor matrix = unsqueeze(result, -1);
  const Sizes order = order_with_last(matrix.dim(), dims);
  Sizes back(order.size(), 0);
  for (size_t d = 0; d < order.size(); ++d) back[size_t(order[d])] = int64_t(d);
  return permute(matrix, back);
}

// "fro" is a norm of vectors, "nuc" the sum of singular values.
void named_matrix_norm(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes dims = two_dims(c, self, c["dim"]);
  const std::string& order = c["ord"].string();
  const bool keepdim = c.boolean("keepdim");
  if (order == "fro")
    return c.result(call<"linalg_vector_norm">(c.session, self, 2, dims, keepdim, c["dtype"]));
  if (order != "nuc") c.error(fmt::format("ord must be \"fro\" or \"nuc\", got \"{}\"", order));
  const Tensor a = c.given("dtype") ? to(self, c.dtype("dtype", self.dtype())) : self;
  const Tensor last = at_the_end(a, dims), values = call<"linalg_svdvals">(c.session, last);
  const Tensor total = sum(values, Sizes{-1}, keepdim);
  c.result(keepdim ? with_dims_kept(total, dims) : total);
}

// ±2 by singular values, ±1 and ±∞ by sums of rows or columns.
void numbered_matrix_norm(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  Sizes dims = two_dims(c, self, c["dim"]);
  const double order = c.real("ord"), magnitude = std::abs(order);
  const bool keepdim = c.boolean("keepdim"), largest = order > 0;
  auto extreme = [&](const Tensor& t, int64_t dim, bool keep) -> Tensor {
    return largest ? call<"amax">(s, t, Sizes{dim}, keep) : call<"amin">(s, t, Sizes{dim}, keep);
  };
  if (magnitude == 2) {
    const Tensor a = c.given("dtype") ? to(self, c.dtype("dtype", self.dtype())) : self;
    const Tensor last = at_the_end(a, dims), values = call<"linalg_svdvals">(s, last);
    const Tensor result = extreme(values, -1, keepdim);
    return c.result(keepdim ? with_dims_kept(result, dims) : result);
  }
  if (magnitude != 1 && !std::isinf(magnitude))
    c.error(fmt::format("there is no matrix norm of order {}", order));
  if (std::isinf(magnitude)) std::swap(dims[0], dims[1]);
  const Tensor sums = call<"linalg_vector_norm">(s, self, 1.0, Sizes{dims[0]}, keepdim, c["dtype"]);
  c.result(extreme(sums, !keepdim && dims[1] > dims[0] ? dims[1] - 1 : dims[1], keepdim));
}

void norm_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const bool ordered = c.given("ord");
  const size_t dims = c.given("dim") ? c.ints("dim").size() : size_t(self.dim());
  if (ordered && dims == 2) {
    const Sizes both = c.given("dim") ? c.ints("dim") : Sizes{0, 1};
    return c.result(call<"linalg_matrix_norm">(c.session, self, c["ord"], both, c["keepdim"], c["dtype"]));
  }
  c.result(call<"linalg_vector_norm">(c.session, self, ordered ? c["ord"] : Value(2.0), c["dim"],
                                      c["keepdim"], c["dtype"]));
}

void nuclear_norm(Call& c, Value dims) {
  c.result(call<"linalg_matrix_norm.str_ord">(c.session, c["self"], "nuc", std::move(dims), c["keepdim"]));
}

void norm_named_body(Call& c) {
  const Sizes both = c.given("dim") ? c.ints("dim") : Sizes{0, 1};
  c.result(Tensor(
      call<"linalg_matrix_norm.str_ord">(c.session, c["self"], c["ord"], both, c["keepdim"], c["dtype"])));
}

// x · y along a dimension; a single pair of vectors is one call of the library.
void vecdot_body(Call& c) {
  const Tensor &x = c.tensor("x"), &y = c.tensor("y");
  if (x.dim() == 1 && y.dim() == 1) return c.result(call<"vdot">(c.session, x, y));
  const Tensor product = is_complex(x.dtype()) ? call<"conj">(c.session, x) * y : x * y;
  c.result(sum(product, Sizes{c.integer("dim")}, false));
}

// Powers as products that accumulate, behind a column of ones.
void vander_body(Call& c) {
  const Tensor& x = c.tensor("x");
  const int64_t columns = c.given("N") ? c.integer("N") : x.size(-1);
  if (columns <= 1) c.error(fmt::format("N must be greater than 1, got {}", columns));
  const Tensor base = x.dim() == 0 ? unsqueeze(x, -1) : x, wide = unsqueeze(base, -1);
  Sizes sizes = base.sizes();
  sizes.push_back(columns - 1);
  const Tensor powers = call<"cumprod">(c.session, expand(wide, sizes), -1);
  sizes.back() = 1;
  const Tensor ones = call<"new_ones">(c.session, powers, sizes);
  c.result(call<"cat">(c.session, Value::Tensors{ones, powers}, -1));
}

// The older one: powers from left to right in a new matrix, then backwards unless they shall increase. What
// it overwrites is saved for the powers' derivative: the framework refuses its backward, and so do we.
void old_vander_body(Call& c) {
  Session& s = c.session;
  const Tensor& x = c.tensor("x");
  if (x.dim() != 1) c.error(fmt::format("expects a vector, got {}", describe(x)));
  const int64_t columns = c.given("N") ? c.integer("N") : x.size(0);
  const DType dtype = is_integral(x.dtype(), true) ? DType::i64 : x.dtype();
  const Tensor out = call<"empty.memory_format">(s, Sizes{x.size(0), columns}, dtype, Value(), x.device());
  if (columns > 0) call<"fill_.Scalar">(s, select(out, 1, 0), 1);
  if (columns > 1) {
    const Tensor rest = call<"slice.Tensor">(s, out, 1, 1);
    copy_(rest, unsqueeze(x, 1));
    const Tensor powers = call<"cumprod">(s, rest, 1);
    copy_(rest, powers);
  }
  c.result(c.boolean("increasing") ? out : flip(out, 1));
}

// By squaring: z holds A to powers of two.
void matrix_power_body(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  check_square(c, self);
  int64_t n = c.integer("n");
  if (n == 0) {
    const Tensor out = clone(self, MemoryFormat::contiguous);
    const Tensor one = call<"eye">(s, self.size(-1), self.dtype(), Value(), self.device());
    return c.result(copy_(out, one));
  }
  Tensor base = n < 0 ? call<"linalg_inv">(s, self) : self;
  n = std::abs(n);
  if (n == 1) return c.result(n == c.integer("n") ? clone(base, MemoryFormat::contiguous) : base);
  if (n == 2) return c.result(matmul(base, base));
  if (n == 3) {
    const Tensor square = matmul(base, base);
    return c.result(matmul(square, base));
  }
  Tensor z, result;
  for (; n > 0; n /= 2) {
    z = z.defined() ? matmul(z, z) : base;
    if (n % 2) result = result.defined() ? matmul(result, z) : z;
  }
  c.result(result);
}

void cond_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (c.given("p") && std::abs(c.real("p")) != 2) {
    const Tensor inverse = call_all<"linalg_inv_ex">(c.session, self)[0];
    const Tensor of_inverse = call<"linalg_matrix_norm">(c.session, inverse, c["p"]);
    const Tensor of_self = call<"linalg_matrix_norm">(c.session, self, c["p"]);
    return c.result(of_self * of_inverse);
  }
  const Tensor values = call<"linalg_svdvals">(c.session, self);
  const Tensor largest = narrow(values, -1, 0, 1), smallest = narrow(values, -1, -1, 1);
  const Tensor ratio = c.given("p") && c.real("p") < 0 ? smallest / largest : largest / smallest;
  c.result(squeeze(ratio, -1));
}

constexpr Op kNorms[] = {
    composite_of("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
                 "ScalarType? dtype=None) -> Tensor",
                 "norm of vectors or matrices", norm_body, {"f32[5]", "f32[5,3] 1", "f32[2,5,3] inf (1 2)"}),
    composite_of("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
                 "ScalarType? dtype=None) -> Tensor",
                 "\"fro\" or \"nuc\" norm of matrices", norm_named_body, {"f32[5,3] \"fro\""}),
    composite_of("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
                 "ScalarType? dtype=None) -> Tensor",
                 "norm of matrices", numbered_matrix_norm, {"f32[5,3] 1", "f32[5,3] 2"},
                 {.autocast = Autocast::fp32_set_dtype}),
    composite_of("linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool "
                 "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                 "\"fro\" or \"nuc\" norm of matrices", named_matrix_norm, {"f32[5,3]", "f32[5,3] \"nuc\""},
                 {.autocast = Autocast::fp32_set_dtype}),
    composite_of("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", "sum of singular values",
                 [](Call& c) {
                   nuclear_norm(c, Sizes{-2, -1});
                 },
                 {"f32[5,3]"}, {.autocast = Autocast::fp32}),
    composite_of("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
                 "sum of singular values", [](Call& c) { nuclear_norm(c, c["dim"]); }, {"f32[2,5,3] (0 2)"},
                 {.autocast = Autocast::fp32}),
    composite_of("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
                 "2-norm along dimensions",
                 [](Call& c) {
                   c.result(call<"norm.ScalarOpt_dim">(c.session, c["self"], 2.0, c["dim"], c["keepdim"]));
                 },
                 {"f32[5,3] (0 1)"}, {.autocast = Autocast::fp32}),
    composite_of("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", "|self| · |self⁻¹|", cond_body,
                 {"f32[3,3]", "f32[3,3] 1"})};

constexpr Op kMatrixNorm[] = {
    composite_of("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", "Σ x · y along a dimension",
                 vecdot_body, {"f32[5] f32[5]", "f32[2,5] f32[2,5]"},
                 {.autocast = Autocast::lower_precision, .product = true}),
    composite_of("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", "powers of x in columns",
                 vander_body, {"f32[4]", "f32[2,3] 4"}),
    composite_of("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", "powers of x in columns",
                 old_vander_body, {"i64[4]", "i64[4] 3 True"}),
    composite_of("linalg_matrix_power(Tensor self, int n) -> Tensor", "selfⁿ", matrix_power_body,
                 {"f32[3,3] 0", "f32[3,3] 5", "f32[3,3] -2"})};

}  // namespace

Tables matrix_norm_operators() {
  static constexpr Records tables[] = {kNorms, kMatrixNorm};
  return tables;
}

}  // namespace metaprof
