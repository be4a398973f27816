// Slices and rows whose norm is too large are scaled down.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/reductions/norms.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

Sizes other_dims(const Tensor& self, int64_t dim) {
  Sizes dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != wrap_dim(dim, self.dim())) dims.push_back(d);
  return dims;
}

Tensor slice_norms(const Call& c, const Tensor& self) {
  const Value dtype = self.dtype() == DType::f16 || self.dtype() == DType::bf16 ? Value(DType::f32) : Value();
  return call<"linalg_vector_norm">(c.session, self, c["p"], other_dims(self, c.integer("dim")), true, dtype);
}

void renorm_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() < 2) c.error(fmt::format("expects at least two dimensions, got {}", describe(self)));
  c.output(self.sizes(), self.dtype());
}

// The norms become factors in place, or a tensor of their own in the input's type.
void renorm_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  const Tensor norms = slice_norms(c, self);
  if (norms.dtype() != self.dtype()) const Tensor factors = c.temporary(norms.sizes(), self.dtype());
}

// FunctionsManual.cpp, renorm_backward.
Gradients renorm_gradient(Backward& b) {
  Session& s = b.session;
  const Tensor& self = b("self");
  const DType exact = self.dtype() == DType::f16 || self.dtype() == DType::bf16 ? DType::f32 : self.dtype();
  const Sizes dims = other_dims(self, b.integer("dim"));
  const Tensor norms = call<"linalg_vector_norm">(s, self, b["p"], dims, true, exact);
  Tensor of_norms;
  {
    Tensor total;
    {
      const Tensor product = self * b.grad();
      total = call<"sum.dim_IntList">(s, product, dims, true, exact);
    }
    of_norms = norm_gradient(s, total, self, b.real("p"), norms, dims, true);
  }
  const Tensor inverse = call<"reciprocal">(s, norms + 1e-7);
  Tensor scaled;
  {
    const Tensor along = inverse * of_norms, across = b.grad() - along, factors = inverse * b["maxnorm"];
    scaled = factors * across;
  }
  const Tensor narrow = to(scaled, self.dtype()), too_large = gt(norms, b["maxnorm"]);
  return {where(too_large, narrow, b.grad())};
}

// The indices are sorted and each kept once (aten/src/ATen/native/cuda/Embedding.cu); from 2.15 on in a copy that is a
// vector (recorded: `shapes/embedding/*-max_norm1.0`).
template <bool as_vector>
void embedding_renorm_cuda(Call& c) {
  const Tensor& indices = c.tensor("indices");
  const int64_t count = indices.numel();
  const Tensor vector = as_vector ? c.temporary(Sizes{count}, DType::i64) : indices;
  Tensor sorted;
  {
    Results both = call_all<"sort">(c.session, vector);
    sorted = both[0];
  }
  const Tensor unique = c.temporary(Sizes{count}, DType::i64), length = c.temporary(Sizes{1}, DType::i64);
  c.temporary_bytes(cub_bytes<cub_unique_bytes>(c, count, 8));
}

constexpr Op embedding_renorm(void (*host_code)(Call&)) {
  return {
      .schema =
          "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
      .summary = "rows that are looked up, if their norm is too large, scaled down",
      .meta = [](Call& c) { c.result(c.tensor("self")); },
      .host_code = {{DeviceType::cuda, host_code}},
      .derivatives = not_differentiable,
      .flops = [](const Call& c) -> FlopCount {
        return {.own = 3 * c.tensor("indices").numel() * c.tensor("self").size(1)};
      },
      .examples = {"f32[10,4] i64[3] 1.0 2.0"}};
}

constexpr Op kRenorm[] = {
    {.schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
     .summary = "slices whose p-norm is too large scaled down to maxnorm",
     .meta = renorm_meta,
     .host_code = {{DeviceType::cuda, renorm_cuda}},
     .derivatives = {{{"self"}, {"self"}, renorm_gradient}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("self").numel()}; },
     .examples = {"f32[5,4,3] 2 1 0.5"},
     .facts = {.in_place_too = true, .autocast = Autocast::fp32}},
    before({2, 15}, embedding_renorm(embedding_renorm_cuda<false>)),
    since({2, 15}, embedding_renorm(embedding_renorm_cuda<true>))};

}  // namespace

Tables renorm_operators() {
  static constexpr Records tables[] = {kRenorm};
  return tables;
}

}  // namespace metaprof
