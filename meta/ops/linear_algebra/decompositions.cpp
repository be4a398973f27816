// Determinants, QR, eigenvalues and singular values (aten/src/ATen/native/BatchLinearAlgebra.cpp,
// PyTorch 2.11). As with the solvers, the libraries' own scratch memory is not known.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

void check_matrix(const Call& c, const Tensor& a) {
  if (a.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(a)));
}

// --- determinants, from the diagonal of LU and the parity of its pivots

void det_meta(Call& c) {
  const Tensor& a = c.tensor("A");
  check_square(c, a);
  const size_t numbers = c.op.schema.returns.size() - 2;
  for (size_t i = 0; i < numbers; ++i) c.output(batch_of(a), a.dtype());
  c.output(a.sizes(), column_major(a.sizes()), a.dtype());
  c.output(with_batch(batch_of(a), {a.size(-1)}), DType::i32);
}

// (−1) to the number of rows that were exchanged.
Tensor parity(Call& c, const Tensor& pivots) {
  Session& s = c.session;
  Tensor signs;
  {
    const Tensor order =
        call<"arange.start">(s, 1, pivots.size(-1) + 1, DType::i32, Value(), pivots.device());
    const Tensor exchanged = ne(order, pivots);
    signs = call<"sum.dim_IntList">(s, exchanged, Sizes{-1}, false, DType::i64);
    call<"fmod_.Scalar">(s, signs, 2);
    call<"mul_.Scalar">(s, signs, -2);
    call<"add_.Scalar">(s, signs, 1);
  }
  return signs;
}

Tensor product_of_diagonal(const Tensor& diagonal) {
  return call<"prod.dim_int">(session_of(diagonal), diagonal, -1);
}

void det_cuda(Call& c) {
  c.allocate_all();
  const Tensor info = c.temporary(batch_of(c.tensor("A")), DType::i32);
  factorise(c, c.tensor("A"));
  const Tensor diagonal = call<"diagonal">(c.session, c.result_tensor(1), 0, -2, -1);
  const Tensor product = product_of_diagonal(diagonal), signs = parity(c, c.result_tensor(2));
}

void slogdet_cuda(Call& c) {
  c.allocate_all();
  const Tensor info = c.temporary(batch_of(c.tensor("A")), DType::i32);
  factorise(c, c.tensor("A"));
  const Tensor diagonal = call<"diagonal">(c.session, c.result_tensor(2), 0, -2, -1);
  {
    const Tensor signs = parity(c, c.result_tensor(3));
    const Tensor each = sgn(diagonal), product = product_of_diagonal(each);
  }
  const Tensor magnitudes = abs(diagonal);
}

// FunctionsManual.cpp, linalg_det_backward and slogdet_backward: A⁻ᴴ times a diagonal. While a second
// derivative is recorded, A is factorised again, as a function of A; the determinant's formula for singular
// matrices is left out, since matrices without numbers count as regular.
Tensor solved_diagonal(Session& s, const Tensor& on_diagonal, const Tensor& a, Tensor lu,
                       const Tensor& pivots, bool regularise) {
  const bool transposes = factors_transpose(a);
  const Tensor wide = unsqueeze(on_diagonal, -1);
  const Tensor values = call<"expand_as">(s, wide, pivots), matrix = call<"diag_embed">(s, values);
  if (s.modes.grad) return call<"linalg_solve">(s, mH(a), mT(matrix));
  if (regularise) {  // a zero on the diagonal becomes the smallest difference of numbers
    const Tensor zero = eq(call<"diagonal">(s, lu, 0, -2, -1), 0.0);
    const double epsilon = a.dtype() == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    const Tensor little = call<"where.Scalar">(s, zero, epsilon, 0.0), added = call<"diag_embed">(s, little);
    lu = lu + added;
  }
  return call<"linalg_lu_solve">(s, lu, pivots, transposes ? mT(matrix) : matrix, true, !transposes);
}

// From 2.15 on the gradient of no numbers is zeros, and that of a single one the gradient itself (recorded:
// `opinfo/linalg.det/0` and `/1`).
template <bool small_ones_apart>
Gradients det_gradient(Backward& b) {
  if (numel(b.sizes("A")) == 0) return {small_ones_apart ? zeros_like(b("A")) : Tensor()};
  if (small_ones_apart && b.sizes("A").back() == 1) {
    const Tensor row = unsqueeze(b.grad(), -1);
    return {call<"expand_as">(b.session, unsqueeze(row, -1), b("A"))};
  }
  const Tensor scaled = b.grad() * b("result");
  return {solved_diagonal(b.session, scaled, b("A"), b("LU"), b("pivots"), true)};
}

Gradients slogdet_gradient(Backward& b) {
  const Tensor& grad = b.grad(1);
  if (!grad.defined()) return {Tensor()};
  return {solved_diagonal(b.session, grad, b("A"), b("LU"), b("pivots"), false)};
}

constexpr Op determinant(Formula gradient) {
  return {.schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
          .summary = "determinant, and the factors it follows from",
          .meta = det_meta,
          .host_code = {{DeviceType::cuda, det_cuda}},
          .derivatives = {{{"A"}, {"A", "LU", "pivots", "result"}, gradient}},
          .flops = cubic_flops<1>,
          .examples = {"f32[3,3]", "f32[2,3,3]"},
          .facts = {.no_gradient_for = {"LU", "pivots"}}};
}

constexpr Op kDeterminants[] = {
    before({2, 15}, determinant(det_gradient<false>)),
    since({2, 15}, determinant(det_gradient<true>)),
    composite_of("linalg_det(Tensor A) -> Tensor", "determinant",
                 [](Call& c) { c.result(call_all<"_linalg_det">(c.session, c["A"])[0]); }, {"f32[3,3]"}),
    {.schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
     .summary = "sign and logarithm of the determinant",
     .meta = det_meta,
     .host_code = {{DeviceType::cuda, slogdet_cuda}},
     .derivatives = {{{"A"}, {"A", "LU", "pivots", "sign"}, slogdet_gradient}},
     .flops = cubic_flops<1>,
     .examples = {"f32[3,3]", "f32[2,3,3]"},
     .facts = {.no_gradient_for = {"LU", "pivots"}}},
    composite_of("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
                 "sign and logarithm of the determinant",
                 [](Call& c) {
                   Results all = call_all<"_linalg_slogdet">(c.session, c["A"]);
                   c.result(all[0]);
                   c.result(all[1]);
                 },
                 {"f32[3,3]"}),
    composite_of("logdet(Tensor self) -> Tensor", "logarithm of the determinant, NaN where it is negative",
                 [](Call& c) {
                   Results all = call_all<"linalg_slogdet">(c.session, c["self"]);
                   const Tensor negative = eq(all[0], -1.0);
                   c.result(call<"where.ScalarSelf">(c.session, negative, std::nan(""), all[1]));
                 },
                 {"f32[3,3]"})};

// --- QR

void qr_meta(Call& c) {
  const Tensor& a = c.tensor("A");
  check_matrix(c, a);
  const std::string& mode = c["mode"].string();
  if (mode != "reduced" && mode != "complete" && mode != "r")
    c.error(fmt::format("mode must be \"reduced\", \"complete\" or \"r\"; got \"{}\"", mode));
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), inner = mode == "complete" ? m : k;
  const Sizes batch = batch_of(a), q = with_batch(batch, {m, inner}), r = with_batch(batch, {inner, n});
  if (mode == "r") {
    c.output(Sizes{0}, a.dtype());
  } else {
    c.output(q, column_major(q), a.dtype());
  }
  c.output(r, column_major(r), a.dtype());
}

// The reflectors and their scales first, then Q from them; a library call each, with a number that says how
// it went.
void qr_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  c.allocate_all();
  const Tensor scales = c.temporary(with_batch(batch_of(a), {std::min(a.size(-1), a.size(-2))}), a.dtype());
  const bool also_q = c["mode"].string() != "r" && scales.size(-1) > 0;
  if (!reflect_by_cublas(c, a)) const Tensor info = c.temporary(Sizes{1}, DType::i32);
  if (also_q) const Tensor info = c.temporary(Sizes{1}, DType::i32);
}

// FunctionsManual.cpp, linalg_qr_backward.
Tensor half_diagonal_hermitian(const Tensor& triangle) {
  Tensor both = triangle + mH(triangle);
  const Tensor diagonal = call<"real">(session_of(both), call<"diagonal">(session_of(both), both, 0, -2, -1));
  call<"mul_.Scalar">(session_of(both), diagonal, 0.5);
  return both;
}

Gradients qr_gradient(Backward& b) {
  const Tensor &q = b("Q"), &r = b("R"), &of_q = b.grad(0), &of_r = b.grad(1);
  const int64_t m = q.size(-2), n = r.size(-1);
  Tensor gradient;
  if (m >= n) {
    {
      Tensor inner;
      if (of_r.defined()) inner = matmul(of_r, mH(r));
      if (of_q.defined()) {
        const Tensor product = matmul(mH(q), of_q);
        inner = inner.defined() ? inner - product : neg(product);
      }
      const Tensor triangle = triu(inner), both = half_diagonal_hermitian(triangle);
      gradient = matmul(q, both);
    }
    if (of_q.defined()) gradient = gradient + of_q;
    return {solve_triangular(mH(r), gradient, false, false)};
  }
  // R = [R1 R2] is wide: Q belongs to the first columns alone.
  Tensor left;
  {
    Tensor difference;
    if (!of_q.defined()) {
      difference = matmul(of_r, mH(r));
    } else {
      const Tensor of_columns = matmul(mH(q), of_q);
      difference = of_r.defined() ? matmul(of_r, mH(r)) - of_columns : neg(of_columns);
    }
    Tensor negative = neg(difference), triangle;
    {
      const Tensor skew = negative - mH(negative);
      triangle = tril(skew);
    }
    left = matmul(q, triangle);
    difference.reset();
    triangle.reset();
    negative.reset();
  }
  Tensor first = solve_triangular(mH(narrow(r, -1, 0, m)), left, false, false);
  left.reset();
  {
    Sizes sizes = first.sizes();
    sizes.back() = n - m;
    const Tensor zeros = call<"new_zeros">(b.session, first, sizes);
    gradient = call<"cat">(b.session, Value::Tensors{first, zeros}, -1);
  }
  first.reset();
  if (!of_r.defined()) return {gradient};
  const Tensor product = matmul(q, of_r);
  gradient = gradient + product;
  return {gradient};
}

constexpr Op kQr[] = {
    {.schema = "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
     .summary = "A = Q · R, Q with columns at right angles",
     .meta = qr_meta,
     .host_code = {{DeviceType::cuda, qr_cuda}},
     .derivatives = {{{"A"}, {"Q", "R"}, qr_gradient}},
     .flops = cubic_flops<2>,
     .examples = {"f32[5,3]", "f32[3,3]", "f32[3,5]", "f32[2,5,3]", "f32[3,5] \"complete\""}},
    composite_of("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", "self = Q · R",
                 [](Call& c) {
                   Results all = call_all<"linalg_qr">(c.session, c["self"],
                                                       c.boolean("some") ? "reduced" : "complete");
                   c.result(all[0]);
                   c.result(all[1]);
                 },
                 {"f32[5,3]"})};

// --- eigenvalues of Hermitian matrices

void eigh_meta(Call& c) {
  const Tensor& a = c.tensor("A");
  check_square(c, a);
  c.output(with_batch(batch_of(a), {a.size(-1)}), real_type(a.dtype()));
  if (c.boolean("compute_v")) {
    c.output(a.sizes(), column_major(a.sizes()), a.dtype());
  } else {
    c.output(Sizes{0}, a.dtype());
  }
}

// The input is replaced by the vectors, wanted or not.
void eigh_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  Tensor work;
  if (c.boolean("compute_v")) {
    c.allocate(1);
    c.allocate(0);
  } else {
    c.allocate(0);
    work = c.temporary(a.sizes(), a.dtype());
    c.allocate(1);
  }
  if (a.numel() == 0) return;
  const Tensor info = c.temporary(batch_of(a), DType::i32);
  check_info(c.session, info, "linalg.eigh");
}

// FunctionsManual.cpp, linalg_eig_backward of Hermitian matrices.
Gradients eigh_gradient(Backward& b) {
  const Tensor &values = b("eigenvalues"), &vectors = b("eigenvectors");
  const Tensor &of_values = b.grad(0), &of_vectors = b.grad(1);
  Session& s = b.session;
  if (!of_vectors.defined()) {
    const Tensor scaled = vectors * unsqueeze(of_values, -2);
    return {matmul(scaled, mH(vectors))};
  }
  const Tensor projected = matmul(mH(vectors), of_vectors);
  Tensor inner;
  {
    const Tensor difference = projected - mH(projected);
    inner = difference * 0.5;
  }
  {
    const Tensor gaps = sub(unsqueeze(values, -2), unsqueeze(values, -1));
    call<"fill_.Scalar">(s, call<"diagonal">(s, gaps, 0, -2, -1), 1);
    call<"div_.Tensor">(s, inner, gaps);
    if (of_values.defined()) copy_(call<"diagonal">(s, inner, 0, -2, -1), of_values);
  }
  const Tensor right = matmul(inner, mH(vectors));
  return {matmul(vectors, right)};
}

bool wants_vectors(const Call& c, const Tensor& a) { return c.session.modes.grad && a.requires_grad(); }

constexpr Op kEigenvalues[] = {
    {.schema = "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor "
               "eigenvectors)",
     .summary = "eigenvalues and eigenvectors of a Hermitian matrix",
     .meta = eigh_meta,
     .host_code = {{DeviceType::cuda, eigh_cuda}},
     .derivatives = {{{"A"}, {"eigenvalues", "eigenvectors"}, eigh_gradient}},
     .flops = cubic_flops<9>,
     .examples = {"f32[3,3]", "f32[2,3,3]"},
     .facts = {.node = "LinalgEighBackward0"}},
    composite_of("linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
                 "eigenvalues and eigenvectors of a Hermitian matrix",
                 [](Call& c) {
                   Results all = call_all<"_linalg_eigh">(c.session, c["self"], c["UPLO"], true);
                   c.result(all[0]);
                   c.result(all[1]);
                 },
                 {"f32[3,3]"}),
    composite_of("linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
                 "eigenvalues of a Hermitian matrix",
                 [](Call& c) {
                   const Tensor& self = c.tensor("self");
                   c.result(call_all<"_linalg_eigh">(c.session, self, c["UPLO"], wants_vectors(c, self))[0]);
                 },
                 {"f32[3,3]"})};

// --- singular values

void svd_meta(Call& c) {
  const Tensor& a = c.tensor("A");
  check_matrix(c, a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const bool full = c.boolean("full_matrices");
  const Sizes batch = batch_of(a);
  const Sizes u = with_batch(batch, {m, full ? m : k}), v = with_batch(batch, {full ? n : k, n});
  if (c.boolean("compute_uv")) {
    c.output(u, column_major(u), a.dtype());
  } else {
    c.output(Sizes{0}, a.dtype());
  }
  c.output(with_batch(batch, {k}), real_type(a.dtype()));
  if (c.boolean("compute_uv")) {
    // cuSOLVER gives V, which is seen as Vᴴ; LAPACK gives Vᴴ by columns.
    c.output(v, a.is_cuda() ? contiguous_strides(v) : column_major(v), a.dtype());
  } else {
    c.output(Sizes{0}, a.dtype());
  }
}

void svd_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  c.allocate(0);
  c.allocate(2);
  c.allocate(1);
  if (a.numel() == 0) return;
  const Tensor info = c.temporary(batch_of(a), DType::i32);
  {
    const Tensor copy = c.temporary(a.sizes(), a.dtype());
    // For small matrices (native/cuda/linalg/BatchLinearAlgebraLib.cpp, gesvdjBatched; recorded:
    // `opinfo/linalg.pinv.singular/7`, 2.15, which is not) the library gives the longer side's vectors in full; what
    // is wanted of them is copied.
    const int64_t longer = std::max(a.size(-1), a.size(-2));
    if (c.boolean("compute_uv") && !c.boolean("full_matrices") && a.size(-1) != a.size(-2) && longer <= 32)
      const Tensor whole = c.temporary(with_batch(batch_of(a), {longer, longer}), a.dtype());
    if (!c.boolean("compute_uv")) {
      const int64_t k = std::min(a.size(-1), a.size(-2));
      const Tensor u = c.temporary(with_batch(batch_of(a), {a.size(-2), k}), a.dtype());
      const Tensor v = c.temporary(with_batch(batch_of(a), {a.size(-1), k}), a.dtype());
    }
  }
  check_info(c.session, info, "linalg.svd");
}

// FunctionsManual.cpp, svd_backward of real matrices.
Gradients svd_gradient(Backward& b) {
  const Tensor& sv = b("S");
  const int64_t k = sv.size(-1);
  // Of full matrices, what belongs to a singular value.
  auto columns = [&](const Tensor& t) { return t.defined() && t.size(-1) > k ? narrow(t, -1, 0, k) : t; };
  auto rows = [&](const Tensor& t) { return t.defined() && t.size(-2) > k ? narrow(t, -2, 0, k) : t; };
  const Tensor u = columns(b("U")), vh = rows(b("Vh"));
  const Tensor of_u = columns(b.grad(0)), of_s = b.grad(1), of_v = rows(b.grad(2));
  Session& s = b.session;
  if (!of_u.defined() && !of_v.defined()) {
    if (u.size(-2) >= vh.size(-1)) return {matmul(u, unsqueeze(of_s, -1) * vh)};
    return {matmul(u * unsqueeze(of_s, -2), vh)};
  }
  auto skew = [](const Tensor& a) { return a - mH(a); };
  Tensor gaps;
  {
    const Tensor squares = sv * sv;
    gaps = sub(unsqueeze(squares, -2), unsqueeze(squares, -1));
    call<"fill_.Scalar">(s, call<"diagonal">(s, gaps, 0, -2, -1), 1);
  }
  Tensor inner;
  if (of_u.defined()) {
    const Tensor product = matmul(mH(u), of_u), part = skew(product) / gaps;
    inner = part * unsqueeze(sv, -2);
  }
  if (of_v.defined()) {
    const Tensor product = matmul(vh, mH(of_v)), part = skew(product) / gaps;
    const Tensor scaled = unsqueeze(sv, -1) * part;
    inner = inner.defined() ? inner + scaled : scaled;
  }
  if (of_s.defined()) inner = inner + call<"diag_embed">(s, of_s);
  const Tensor right = matmul(inner, vh);
  Tensor gradient = matmul(u, right);
  if (of_u.defined() && u.size(-2) > k) {
    const Tensor scaled = of_u / unsqueeze(sv, -2);
    const Tensor outside = scaled - matmul(u, matmul(mH(u), scaled));
    gradient = gradient + matmul(outside, vh);
  }
  if (of_v.defined() && vh.size(-1) > k) {
    const Tensor scaled = of_v / unsqueeze(sv, -1);
    const Tensor outside = scaled - matmul(matmul(scaled, mH(vh)), vh);
    gradient = gradient + matmul(u, outside);
  }
  return {gradient};
}

constexpr Op kSingularValues[] = {
    {.schema = "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
               "-> (Tensor U, Tensor S, Tensor Vh)",
     .summary = "A = U · diag(S) · Vᴴ",
     .meta = svd_meta,
     .host_code = {{DeviceType::cuda, svd_cuda}},
     .derivatives = {{{"A"}, {"U", "S", "Vh"}, svd_gradient}},
     .flops = cubic_flops<14>,
     .examples = {"f32[5,3]", "f32[3,5]"},
     .facts = {.node = "LinalgSvdBackward0"}},
    composite_of("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, "
                 "Tensor Vh)",
                 "A = U · diag(S) · Vᴴ",
                 [](Call& c) {
                   Results all =
                       call_all<"_linalg_svd">(c.session, c["A"], c["full_matrices"], true, c["driver"]);
                   for (size_t i = 0; i < 3; ++i) c.result(all[i]);
                 },
                 {"f32[3,3]"}),
    composite_of("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", "singular values",
                 [](Call& c) {
                   const Tensor& a = c.tensor("A");
                   c.result(
                       call_all<"_linalg_svd">(c.session, a, false, wants_vectors(c, a), c["driver"])[1]);
                 },
                 {"f32[3,3]"}),
    composite_of("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
                 "self = U · diag(S) · Vᴴ",
                 [](Call& c) {
                   const Tensor& self = c.tensor("self");
                   if (!c.boolean("compute_uv")) {
                     const Tensor values = call<"linalg_svdvals">(c.session, self);
                     const int64_t m = self.size(-2), n = self.size(-1);
                     c.result(zeros_of(self, with_batch(batch_of(self), {m, m})));
                     c.result(values);
                     return c.result(zeros_of(self, with_batch(batch_of(self), {n, n})));
                   }
                   Results all = call_all<"linalg_svd">(c.session, self, !c.boolean("some"));
                   c.result(all[0]);
                   c.result(all[1]);
                   c.result(mH(all[2]));
                 },
                 {"f32[3,3]"})};

}  // namespace

Tables decomposition_operators() {
  static constexpr Records tables[] = {kDeterminants, kQr, kEigenvalues, kSingularValues};
  return tables;
}

}  // namespace metaprof
