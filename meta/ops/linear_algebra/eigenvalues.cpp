// Eigenvalues of matrices that need not be Hermitian: complex, whatever the matrix is
// (native/BatchLinearAlgebra.cpp, linalg_eig_out_info; FunctionsManual.cpp, linalg_eig_backward; recorded on the host:
// `opinfo/linalg.eig`).

#include "meta/autograd/engine/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/estimated.h"

namespace metaprof {
namespace {

void eig_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  check_square(c, self);
  const DType dtype = complex_type(self.dtype());
  c.output(with_batch(batch_of(self), {self.size(-1)}), dtype);
  c.output(self.sizes(), column_major(self.sizes()), dtype);
}

// What the library (MAGMA or cuSOLVER, as PyTorch was built) and its copies on the host take is known to it alone.
void eig_cuda(Call& c) {
  c.allocate_all();
  estimated(c.session, c.session.allocate(c.device(), 0, Category::workspace));
}

Gradients eig_gradient(Backward& b) {
  const Tensor &values = b("eigenvalues"), &vectors = b("eigenvectors");
  const Tensor &of_values = b.grad(0), &of_vectors = b.grad(1);
  Session& s = b.session;
  const DType before = b.dtype("self");
  if (!of_vectors.defined()) {
    const Tensor scaled = unsqueeze(of_values, -1) * mH(vectors);
    return {real_if(call<"linalg_solve">(s, mH(vectors), scaled), before)};
  }
  const Tensor projected = matmul(mH(vectors), of_vectors);
  const Tensor lengths = real(call<"diagonal">(s, projected, 0, -2, -1));
  Tensor inner;
  {
    const Tensor along = vectors * unsqueeze(lengths, -2);
    const Tensor back = matmul(mH(vectors), along);
    inner = projected - back;
  }
  {
    const Tensor conjugate = call<"conj">(s, values);
    const Tensor gaps = sub(unsqueeze(conjugate, -2), unsqueeze(conjugate, -1));
    call<"fill_.Scalar">(s, call<"diagonal">(s, gaps, 0, -2, -1), 1.0);
    call<"div_.Tensor">(s, inner, gaps);
    if (of_values.defined()) copy_(call<"diagonal">(s, inner, 0, -2, -1), of_values);
  }
  const Tensor right = matmul(inner, mH(vectors));
  return {real_if(call<"linalg_solve">(s, mH(vectors), right), before)};
}

constexpr Op kEigenvaluesOfAny[] = {
    {.schema = "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
     .summary = "eigenvalues and eigenvectors, complex",
     .meta = eig_meta,
     .host_code = {{DeviceType::cuda, eig_cuda}},
     .derivatives = {{{"self"}, {"eigenvalues", "eigenvectors"}, eig_gradient}},
     .flops = cubic_flops<25>,
     .examples = {"f32[3,3]", "f32[2,3,3]"},
     .facts = {.host_reads = true}},
    composite_of("linalg_eigvals(Tensor self) -> Tensor", "eigenvalues, complex",
                 [](Call& c) { c.result(call_all<"linalg_eig">(c.session, c.tensor("self"))[0]); },
                 {"f32[3,3]"})};

}  // namespace

Tables eigenvalue_operators() {
  static constexpr Records tables[] = {kEigenvaluesOfAny};
  return tables;
}

}  // namespace metaprof
