// Questions about whole tensors, whose answers are numbers or sets, and products of sets.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/backward.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/reductions/norms.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

constexpr Facts kReadsData = {.cudagraph_unsafe = true, .reads_data = true};

// --- Are two tensors equal? The answer is read from the device.

void equal_cuda(Call& c) {
  const Tensor &self = c.tensor("self"), &other = c.tensor("other");
  if (self.sizes() != other.sizes() || self.numel() == 0) return;
  const Tensor alike = c.temporary(self.sizes(), DType::b8);
  const Tensor all = call<"all">(c.session, alike);
}

void allclose_body(Call& c) {
  const Tensor close =
      call<"isclose">(c.session, c["self"], c["other"], c["rtol"], c["atol"], c["equal_nan"]);
  const Tensor all = call<"all">(c.session, close);
  c.result(Value(true));
}

// Few things to look for are compared one by one, many are sorted with all the rest
// (aten/src/ATen/native/TensorCompare.cpp, isin_Tensor_Tensor_out).
void isin_meta(Call& c) { c.output(c.tensor("elements").sizes(), DType::b8); }

void isin_cuda(Call& c) {
  const Tensor &elements = c.tensor("elements"), &tests = c.tensor("test_elements");
  Session& s = c.session;
  c.allocate(0);
  if (elements.numel() == 0) return;
  if (double(tests.numel()) < 10.0 * std::pow(double(elements.numel()), 0.145)) {
    const Tensor wide = unsqueeze(elements, -1), flat = view(tests, Sizes{1, -1});
    const Tensor alike = c.boolean("invert") ? ne(wide, flat) : eq(wide, flat);
    const Tensor found = c.boolean("invert") ? call<"all.dim">(s, alike, -1) : call<"any.dim">(s, alike, -1);
    return;
  }
  if (c.boolean("assume_unique")) c.error("large sets that are assumed to be unique are not modelled");
  c.error("large sets depend on how many values are unique: not modelled");
}

// --- products of sets

void cartesian_product_body(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  for (const Tensor& tensor : tensors)
    if (tensor.dim() != 1) c.error(fmt::format("expects vectors, got {}", describe(tensor)));
  if (tensors.size() == 1) return c.result(tensors[0]);
  const Results grids = call_all<"meshgrid.indexing">(c.session, tensors, "ij");
  Value::Tensors flat;
  for (const Tensor& grid : grids.tensors()) flat.push_back(call<"flatten.using_ints">(c.session, grid));
  c.result(call<"stack">(c.session, flat, 1));
}

// A mask keeps those whose places rise (aten/src/ATen/native/Itertools.cpp).
void combinations_body(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  const int64_t r = c.integer("r");
  if (self.dim() != 1) c.error(fmt::format("expects a vector, got {}", describe(self)));
  if (r < 0) c.error(fmt::format("expects a number of elements that is not negative, got {}", r));
  if (r == 0) return c.result(call<"empty.memory_format">(s, Sizes{0}, self.dtype(), Value(), self.device()));
  const int64_t n = self.numel();
  const Results grids = call_all<"meshgrid.indexing">(s, Value::Tensors(size_t(r), self), "ij");
  Tensor mask;
  {
    const Tensor range = call<"arange">(s, n, DType::i64, Value(), self.device());
    const Results places = call_all<"meshgrid.indexing">(s, Value::Tensors(size_t(r), range), "ij");
    mask = call<"full">(s, Sizes(size_t(r), n), true, DType::b8, Value(), self.device());
    for (size_t i = 0; i + 1 < size_t(r); ++i) {
      const Tensor &before = places.tensors()[i], &behind = places.tensors()[i + 1];
      const Tensor rises = c.boolean("with_replacement") ? le(before, behind) : lt(before, behind);
      call<"logical_and_">(s, mask, rises);
    }
  }
  Value::Tensors chosen;
  for (const Tensor& grid : grids.tensors()) chosen.push_back(call<"masked_select">(s, grid, mask));
  c.result(call<"stack">(s, chosen, 1));
}

// --- trace

void trace_cuda(Call& c) {
  const Tensor diagonal = call<"diagonal">(c.session, c["self"]);
  const Tensor total = sum(diagonal);
  c.adopt(0, total);
}

void trace_backward_body(Call& c) {
  const Sizes& sizes = c.ints("sizes");
  if (sizes.size() != 2) c.error("expects the sizes of a matrix");
  const Tensor zeros = zeros_of(c.tensor("grad"), Sizes{sizes[0] * sizes[1]});
  const Tensor places = call<"arange.start_step">(c.session, 0, zeros.numel(), sizes[1] + 1, DType::i64,
                                                  Value(), zeros.device());
  call<"index_fill_.int_Tensor">(c.session, zeros, 0, places, c["grad"]);
  c.result(view(zeros, sizes));
}

// --- renorm: slices whose norm is too large are scaled down

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

// The indices are sorted and each kept once (aten/src/ATen/native/cuda/Embedding.cu).
void embedding_renorm_cuda(Call& c) {
  const Tensor& indices = c.tensor("indices");
  const int64_t count = indices.numel();
  Tensor sorted;
  {
    Results both = call_all<"sort">(c.session, indices);
    sorted = both[0];
  }
  const Tensor unique = c.temporary(Sizes{count}, DType::i64), length = c.temporary(Sizes{1}, DType::i64);
  c.temporary_bytes(cub_unique_bytes(c.profile(), count, 8));
}

constexpr Op kWholeTensor[] = {
    {.schema = "equal(Tensor self, Tensor other) -> bool",
     .summary = "whether all elements are the same",
     .meta = [](Call& c) { c.result(Value(true)); },
     .kernels = {{DeviceType::cuda, equal_cuda}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = kReadsData},
    composite_of("allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float "
                 "atol=1e-08, bool equal_nan=False) -> bool",
                 "whether |self − other| ≤ atol + rtol · |other| everywhere", allclose_body,
                 {"f32[2,3] f32[2,3]"}, kReadsData),
    {.schema = "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool "
               "assume_unique=False, bool invert=False) -> Tensor",
     .summary = "which elements are among the others",
     .meta = isin_meta,
     .kernels = {{DeviceType::cuda, isin_cuda}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[20] f32[5]"}},
    composite_of("cartesian_prod(Tensor[] tensors) -> Tensor", "all tuples of elements",
                 cartesian_product_body, {"(f32[2] f32[3])"}),
    composite_of("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
                 "all subsets of r elements", combinations_body, {"f32[4]"}, kReadsData),
    {.schema = "trace(Tensor self) -> Tensor",
     .summary = "sum of the diagonal",
     .meta =
         [](Call& c) {
           const DType dtype = c.tensor("self").dtype();
           c.output({}, is_integral(dtype, true) ? DType::i64 : dtype);
         },
     .kernels = {{DeviceType::cuda, trace_cuda}},
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) {
                        return call<"trace_backward">(b.session, b.grad(), b.sizes("self"));
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("self").size(0)}; },
     .examples = {"f32[3,3]"}},
    composite_of("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor",
                 "the gradient on the diagonal of zeros", trace_backward_body, {"f32[] (3 3)"}),
    {.schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
     .summary = "slices whose p-norm is too large scaled down to maxnorm",
     .meta = renorm_meta,
     .kernels = {{DeviceType::cuda, renorm_cuda}},
     .derivatives = {{{"self"}, {"self"}, renorm_gradient}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("self").numel()}; },
     .examples = {"f32[5,4,3] 2 1 0.5"},
     .facts = {.in_place_too = true, .autocast = Autocast::fp32}},
    {.schema = "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> "
               "Tensor(a!)",
     .summary = "rows that are looked up, if their norm is too large, scaled down",
     .meta = [](Call& c) { c.result(c.tensor("self")); },
     .kernels = {{DeviceType::cuda, embedding_renorm_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 3 * c.tensor("indices").numel() * c.tensor("self").size(1)};
     },
     .examples = {"f32[10,4] i64[3] 1.0 2.0"}}};

}  // namespace

Tables whole_tensor_operators() {
  static constexpr Records tables[] = {kWholeTensor};
  return tables;
}

}  // namespace metaprof
