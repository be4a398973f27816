// Distances between all pairs of vectors, cross products, and matrices on a diagonal.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/products/family.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

Tensor cat(Tensor a, Tensor b, Tensor c, int64_t dim) {
  Session& session = session_of(a);
  return call<"cat">(session, Value::Tensors{std::move(a), std::move(b), std::move(c)}, dim);
}

Sizes pair_sizes(const Call& c) {
  const Tensor &x1 = c.tensor("x1"), &x2 = c.tensor("x2");
  if (x1.dim() < 2 || x2.dim() < 2 || x1.size(-1) != x2.size(-1))
    c.error(
        fmt::format("expects two lists of vectors of one size; got {} and {}", describe(x1), describe(x2)));
  Sizes sizes = broadcast(SizesView(x1.sizes()).first(size_t(x1.dim() - 2)),
                          SizesView(x2.sizes()).first(size_t(x2.dim() - 2)));
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return sizes;
}

void distances_meta(Call& c) { c.output(pair_sizes(c), c.tensor("x1").dtype()); }

// |x1 − x2|² = |x1|² − 2·x1·x2 + |x2|², as one product of matrices with two more columns
// (aten/src/ATen/native/Distance.cpp, _euclidean_dist).
void euclidean_kernel(Call& c) {
  const Tensor &x1 = c.tensor("x1"), &x2 = c.tensor("x2");
  Session& s = c.session;
  auto squares = [&](const Tensor& x) { return sum(pow(x, 2), Sizes{-1}, true); };
  auto ones = [&](const Tensor& like) -> Tensor {
    return call<"ones_like">(s, like, Value(), Value(), Value(), Value(), MemoryFormat::contiguous);
  };
  Tensor norms1 = squares(x1), ones1 = ones(norms1), norms2 = squares(x2), ones2 = ones(norms2);
  // The parts are moved into the joined matrices.
  const Tensor left = cat(call<"mul.Scalar">(s, x1, -2), std::move(norms1), std::move(ones1), -1);
  const Tensor right = cat(x2, std::move(ones2), std::move(norms2), -1);
  const Tensor product = matmul(left, mT(right));
  call<"clamp_min_">(s, product, 0);
  call<"sqrt_">(s, product);
  c.results[0] = Value(product);
}

Gradients euclidean_gradients(Backward& b) {
  const Tensor &x1 = b("x1"), &x2 = b("x2"), &result = b("result");
  const Tensor ratio = b.grad() / result;
  masked_fill_(ratio, call<"eq.Scalar">(b.session, result, 0), 0);
  // All of it lives until the end.
  const Tensor product1 = matmul(ratio, x2), total1 = sum(ratio, Sizes{-1}, true), own1 = x1 * total1;
  const Tensor gradient1 = own1 - product1;
  const Tensor product2 = matmul(mT(ratio), x1), total2 = sum(ratio, Sizes{-2}, false);
  const Tensor own2 = x2 * unsqueeze(total2, -1);
  return {gradient1, own2 - product2};
}

// The vectors for each batch of the results, one after the other in memory.
Tensor batched(Call& c, const Tensor& x, SizesView batch) {
  Sizes wide(batch.begin(), batch.end());
  wide.push_back(x.size(-2));
  wide.push_back(x.size(-1));
  return c.contiguous(expand(x, wide));
}

void cdist_forward_cuda(Call& c) {
  const Tensor& distances = c.result_tensor();
  const SizesView batch = SizesView(distances.sizes()).first(size_t(distances.dim() - 2));
  const Tensor x1 = batched(c, c.tensor("x1"), batch), x2 = batched(c, c.tensor("x2"), batch);
  c.allocate(0);
}

// aten/src/ATen/native/cuda/DistanceKernel.cu: every pair's share first, then their sum.
void cdist_backward_cuda(Call& c) {
  const Tensor& grad = c.tensor("grad");
  const SizesView batch = SizesView(grad.sizes()).first(size_t(grad.dim() - 2));
  const Tensor x1 = batched(c, c.tensor("x1"), batch), x2 = batched(c, c.tensor("x2"), batch);
  c.allocate(0);
  if (c.real("p") == 0 || grad.numel() == 0) return;
  const Tensor shares = c.temporary(Sizes{numel(batch), x2.size(-2), x1.size(-2), x1.size(-1)}, x1.dtype());
  const Tensor result = view(c.result_tensor(), Sizes{numel(batch), x1.size(-2), x1.size(-1)});
  reduction_buffers(c, shares, Sizes{1}, result, {.accumulator = accumulator_bytes(x1.dtype())});
}

Tensor distance_gradient(Backward& b, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                         const Tensor& distances) {
  return call<"_cdist_backward">(b.session, grad, x1, x2, b["p"], distances);
}

// Beyond 25 vectors the Euclidean distance is computed by products (mode 0), always (1), never (2).
void cdist_body(Call& c) {
  const Tensor &x1 = c.tensor("x1"), &x2 = c.tensor("x2");
  const double p = c.real("p");
  const int64_t mode = c.given("compute_mode") ? c.integer("compute_mode") : 0;
  const int64_t rows1 = x1.size(-2), rows2 = x2.size(-2);
  const bool by_products = p == 2 && (mode == 1 || (mode == 0 && (rows1 > 25 || rows2 > 25)));
  const Sizes sizes = pair_sizes(c);
  if (!by_products || x1.numel() == 0 || x2.numel() == 0)
    return c.result(call<"_cdist_forward">(c.session, x1, x2, p, c["compute_mode"]));
  const Sizes batch = without_last(sizes, 2);
  auto flat = [&](const Tensor& x) {
    Sizes wide = batch;
    wide.push_back(x.size(-2));
    wide.push_back(x.size(-1));
    return view(expand(x, wide), Sizes{numel(batch), x.size(-2), x.size(-1)});
  };
  const Tensor left = flat(x1), right = flat(x2);
  c.result(view(call<"_euclidean_dist">(c.session, left, right), sizes));
}

// --- pdist: the distances between all pairs of rows

void row_pairs_meta(Call& c) {
  const int64_t rows = c.tensor("self").size(0);
  c.output(Sizes{multiply(rows, std::max<int64_t>(0, rows - 1)) / 2}, c.tensor("self").dtype());
}

// native/cuda/DistanceKernel.cu, pdist_backward_kernel_impl: every row's share first, then their sum.
void row_pairs_backward_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  if (c.real("p") == 0 || c.tensor("grad").numel() == 0 || self.numel() == 0) return;
  const Tensor shares = c.temporary(Sizes{self.size(0) - 1, self.size(0), self.size(1)}, self.dtype());
  reduction_buffers(c, shares, Sizes{0}, c.result_tensor(), {.accumulator = accumulator_bytes(self.dtype())});
}

void row_pairs_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() != 2) c.error(fmt::format("expects a matrix, got {}", describe(self)));
  c.result(call<"_pdist_forward">(c.session, contiguous(self), c["p"]));
}

constexpr Op kRowPairs[] = {
    {.schema = "pdist(Tensor self, float p=2) -> Tensor",
     .summary = "p-norm of self[i] − self[j] for i < j",
     .meta = composite(row_pairs_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[4,5]", "f32[4,5] 1.0"},
     .facts = {.autocast = Autocast::fp32}},
    {.schema = "_pdist_forward(Tensor self, float p=2) -> Tensor",
     .summary = "p-norm of self[i] − self[j] for i < j, of a contiguous matrix",
     .meta = row_pairs_meta,
     .derivatives = {{{"self"},
                      {"self", "result"},
                      [](Backward& b) -> Gradients {
                        return {Tensor(
                            call<"_pdist_backward">(b.session, b.grad(), b("self"), b["p"], b("result")))};
                      }}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 3 * c.result_tensor().numel() * c.tensor("self").size(1)};
     },
     .examples = {"f32[4,5]"},
     .facts = {.node = "PdistBackward0"}},
    {.schema = "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
     .summary = "gradient of the rows",
     .meta = [](Call& c) { c.output(c.tensor("self").sizes(), c.tensor("self").dtype()); },
     .host_code = {{DeviceType::cuda, row_pairs_backward_cuda}},
     .derivatives = {{{"grad"}, {}, not_implemented},
                     {{"self"}, {}, not_implemented},
                     {{"pdist"}, {}, not_implemented}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 4 * c.tensor("grad").numel() * c.tensor("self").size(1)};
     },
     .examples = {"f32[6] f32[4,5] 2.0 f32[6]"}}};

void cross_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &other = c.tensor("other");
  c.output(broadcast_all(c, std::array{&self, &other}), result_type({&self, &other}));
  const int64_t dim = wrap_dim(c.integer("dim"), c.result_tensor().dim());
  if (self.dim() != other.dim() || c.result_tensor().size(dim) != 3)
    c.error(fmt::format("expects three elements along the dimension; got {} and {}", describe(self),
                        describe(other)));
}

Tensor cross(const Tensor& a, const Tensor& b, const Value& dim) {
  return call<"linalg_cross">(session_of(a), a, b, dim);
}

// Without a dimension: the first one of size 3.
void cross_body(Call& c) {
  const Tensor &self = c.tensor("self"), &other = c.tensor("other");
  if (c.given("dim")) return c.result(cross(self, other, c["dim"]));
  const Sizes sizes = broadcast(self.sizes(), other.sizes());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 3) return c.result(cross(self, other, int64_t(d)));
  c.error(fmt::format("no dimension has size 3; got {} and {}", describe(self), describe(other)));
}

constexpr Op kCrossProducts[] = {
    {.schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
     .summary = "vectors at right angles to both",
     .meta = cross_meta,
     .derivatives = {{{"other"},
                      {"self"},
                      [](Backward& b) -> Gradients { return {cross(b.grad(), conj(b("self")), b["dim"])}; }},
                     {{"self"},
                      {"other"},
                      [](Backward& b) -> Gradients {
                        return {cross(conj(b("other")), b.grad(), b["dim"])};
                      }}},
     .flops = elementwise_flops<3>,
     .examples = {"f32[2,3] f32[2,3]"}},
    {.schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
     .summary = "vectors at right angles to both",
     .meta = composite(cross_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.autocast = Autocast::promote}}};

constexpr Op kVectorGeometry[] = {
    {.schema = "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
     .summary = "|x1[i] − x2[j]|, by a product of matrices",
     .meta = distances_meta,
     .host_code = {{DeviceType::cuda, euclidean_kernel}, {DeviceType::cpu, euclidean_kernel}},
     .derivatives = {{{"x1", "x2"}, {"x1", "x2", "result"}, euclidean_gradients}},
     .flops = elementwise_flops<4>,
     .examples = {"f32[2,3,5] f32[2,4,5]"}},
    {.schema = "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
     .summary = "p-norm of x1[i] − x2[j]",
     .meta = distances_meta,
     .host_code = {{DeviceType::cuda, cdist_forward_cuda}},
     .derivatives = {{{"x1"},
                      {"x1", "x2", "result"},
                      [](Backward& b) -> Gradients {
                        return {distance_gradient(b, contiguous(b.grad()), b("x1"), b("x2"), b("result"))};
                      }},
                     {{"x2"},
                      {"x1", "x2", "result"},
                      [](Backward& b) -> Gradients {
                        const Tensor distances = contiguous(mT(b("result")));
                        const Tensor grad = contiguous(mT(b.grad()));
                        return {distance_gradient(b, grad, b("x2"), b("x1"), distances)};
                      }}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 3 * c.result_tensor().numel() * c.tensor("x1").size(-1)};
     },
     .examples = {"f32[3,5] f32[4,5] 1.0 None"},
     .facts = {.node = "CdistBackward0"}},
    {.schema = "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
     .summary = "gradient of the first list of vectors",
     .meta =
         [](Call& c) {
           const Tensor &x1 = c.tensor("x1"), &grad = c.tensor("grad");
           Sizes sizes = without_last(grad.sizes(), 2);
           sizes.push_back(x1.size(-2));
           sizes.push_back(x1.size(-1));
           c.output(sizes, x1.dtype());
         },
     .host_code = {{DeviceType::cuda, cdist_backward_cuda}},
     .derivatives = {{{"grad"}, {}, not_implemented},
                     {{"x1"}, {}, not_implemented},
                     {{"x2"}, {}, not_implemented}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 4 * c.tensor("grad").numel() * c.tensor("x1").size(-1)};
     },
     .examples = {"f32[3,4] f32[3,5] f32[4,5] 1.0 f32[3,4]"},
     .facts = {.takes = "grad.dim >= 2, x1.dim >= 2, x2.dim >= 2"}},
    {.schema = "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
     .summary = "p-norm of x1[i] − x2[j]",
     .meta = composite(cdist_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[3,5] f32[4,5]", "f32[3,5] f32[4,5] 1.0"},
     .facts = {.autocast = Autocast::fp32}}};

}  // namespace

Tables vector_geometry_operators() {
  static constexpr Records tables[] = {kCrossProducts, kRowPairs, kVectorGeometry};
  return tables;
}

}  // namespace metaprof
