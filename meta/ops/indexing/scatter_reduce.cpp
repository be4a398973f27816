// Reductions into given places: scatter_reduce by element, index_reduce by slice.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

// The two families differ in how places are read and written.
enum class By { element, slice };

template <By by>
Tensor read(const Tensor& from, int64_t dim, const Tensor& index) {
  return by == By::element ? gather(from, dim, index) : index_select(from, dim, index);
}

template <By by>
Tensor added(const Tensor& to, int64_t dim, const Tensor& index, const Tensor& what) {
  if constexpr (by == By::element) return call<"scatter_add">(session_of(to), to, dim, index, what);
  return call<"index_add">(session_of(to), to, dim, index, what);
}

template <By by>
Tensor reduced(const Tensor& self, const Tensor& index, const Tensor& source, const Backward& b) {
  Session& s = session_of(self);
  if constexpr (by == By::element)
    return call<"scatter_reduce.two">(s, self, b["dim"], index, source, b["reduce"], b["include_self"]);
  return call<"index_reduce">(s, self, b["dim"], index, source, b["reduce"], b["include_self"]);
}

void copy_of_self_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  c.output(self.sizes(), self.dtype());
}

Tensor counts_like(const Tensor& x, bool include_self) { return include_self ? ones_like(x) : zeros_like(x); }

// A mean divides by how many were added.
template <By by>
void kernel(Call& c) {
  c.allocate(0);
  if (c["reduce"].string() != "mean") return;
  const Tensor& result = c.result_tensor();
  const bool include_self = c.boolean("include_self");
  Tensor counts, ones;
  if constexpr (by == By::element) {
    ones = ones_like(c.tensor("src"));
    counts = counts_like(result, include_self);
    call<"scatter_add_">(c.session, counts, c["dim"], c["index"], ones);
  } else {
    counts = counts_like(result, include_self);
    const Tensor slice_ones = ones_like(c.tensor("source"));
    call<"index_add_">(c.session, counts, c["dim"], c["index"], slice_ones);
  }
  { const Tensor none = eq(counts, 0); }
  counts.reset();
}

// torch/csrc/autograd/FunctionsManual.cpp, scatter_reduce_backward and index_reduce_backward.
struct Parts {
  Tensor self, source;
};

template <By by>
Parts product_backward(Backward& b, const Tensor& self, const Tensor& index, const Tensor& source,
                       const Tensor& result, int64_t dim) {
  Session& s = b.session;
  const Tensor& grad = b.grad();
  Parts gradients;
  Tensor filled_self;
  {
    const Tensor zero = eq(self, 0);
    filled_self = call<"masked_fill.Scalar">(s, self, zero, 1);
  }
  const Tensor filled_result = reduced<by>(filled_self, index, source, b);
  {
    const Tensor product = mul(grad, filled_result);
    gradients.self = div(product, filled_self);
  }
  const Tensor source_zero = eq(source, 0);
  Tensor zeros_there;
  {
    const Tensor none = zeros_like(self);
    const Tensor ones = to(source_zero, self.dtype());
    const Tensor counts = added<by>(none, dim, index, ones);
    zeros_there = read<by>(counts, dim, index);
  }
  Tensor single_zero;
  {
    const Tensor one = eq(zeros_there, 1);
    single_zero = call<"bitwise_and.Tensor">(s, source_zero, one);
  }
  const Tensor filled_source = call<"masked_fill.Scalar">(s, source, single_zero, 1);
  const Tensor filled_source_result = reduced<by>(self, index, filled_source, b);
  {
    const Tensor divisor = call<"masked_fill.Scalar">(s, source, source_zero, 1);
    const Tensor product = mul(grad, result);
    const Tensor there = read<by>(product, dim, index);
    const Tensor quotient = div(there, divisor);
    const Tensor filled_product = mul(grad, filled_source_result);
    const Tensor filled_there = read<by>(filled_product, dim, index);
    gradients.source = where(single_zero, filled_there, quotient);
  }
  return gradients;
}

template <By by>
Parts mean_backward(Backward& b, const Tensor& index, const Tensor& source, int64_t dim) {
  const Tensor& grad = b.grad();
  Parts gradients;
  Tensor counts;
  {
    const Tensor start = counts_like(grad, b.boolean("include_self"));
    const Tensor ones = ones_like(source);
    counts = added<by>(start, dim, index, ones);
  }
  {
    const Tensor none = eq(counts, 0);
    masked_fill_(counts, none, 1);
  }
  gradients.self = div(grad, counts);
  const Tensor counts_there = read<by>(counts, dim, index);
  const Tensor grad_there = read<by>(grad, dim, index);
  gradients.source = div(grad_there, counts_there);
  return gradients;
}

Tensor equal_as(const Tensor& a, const Tensor& b, DType dtype) {
  const Tensor equal = eq(a, b);
  return to(equal, dtype);
}

template <By by>
Parts extremum_backward(Backward& b, const Tensor& self, const Tensor& index, const Tensor& source,
                        const Tensor& result, int64_t dim) {
  Parts gradients;
  const Tensor value = read<by>(result, dim, index);
  const Tensor self_is_result = equal_as(self, result, self.dtype());
  const Tensor source_is_result = equal_as(source, value, self.dtype());
  const Tensor sharing = added<by>(self_is_result, dim, index, source_is_result);
  const Tensor share = div(b.grad(), sharing);
  if constexpr (by == By::element) {
    {
      const Tensor equal = eq(self, result);
      gradients.self = mul(equal, share);
    }
    const Tensor there = read<by>(share, dim, index);
    const Tensor equal = eq(source, value);
    gradients.source = mul(equal, there);
  } else {
    gradients.self = mul(self_is_result, share);
    const Tensor there = read<by>(share, dim, index);
    gradients.source = mul(source_is_result, there);
  }
  return gradients;
}

template <By by>
Gradients backward_of(Backward& b, const Tensor& source) {
  const Tensor &self = b("self"), &index = b("index"), &result = b("result");
  const int64_t dim = b.integer("dim");
  const std::string& reduce = b["reduce"].string();
  Parts gradients;
  if (reduce == "sum") {
    gradients = {b.grad(), read<by>(b.grad(), dim, index)};
  } else if (reduce == "prod") {
    gradients = product_backward<by>(b, self, index, source, result, dim);
  } else if (reduce == "mean") {
    gradients = mean_backward<by>(b, index, source, dim);
  } else {
    gradients = extremum_backward<by>(b, self, index, source, result, dim);
  }
  if (!b.boolean("include_self")) {
    if constexpr (by == By::element) {
      gradients.self = call<"scatter.value">(b.session, gradients.self, dim, index, 0);
    } else {
      gradients.self = call<"index_fill.int_Scalar">(b.session, gradients.self, dim, index, 0);
    }
  }
  return {gradients.self, gradients.source};
}

constexpr Op kScatterReduce[] = {
    {.schema = "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
               "include_self=True) -> Tensor",
     .summary = "self with src reduced into the places of index",
     .meta = copy_of_self_meta,
     .host_code = {{DeviceType::cuda, kernel<By::element>}},
     .derivatives = {{{"self", "src"},
                      {"self", "index", "src", "result"},
                      [](Backward& b) -> Gradients { return backward_of<By::element>(b, b("src")); }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("src").numel()}; },
     .examples = {"f32[2,5] 1 i64[2,3] f32[2,3] \"sum\"", "f32[2,5] 1 i64[2,3] f32[2,3] \"mean\" False"},
     .facts = {.in_place_too = true}},
    {.schema = "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
               "include_self=True) -> Tensor",
     .summary = "self with slices of source reduced into the places of index",
     .meta = copy_of_self_meta,
     .host_code = {{DeviceType::cuda, kernel<By::slice>}},
     .derivatives = {{{"self", "source"},
                      {"self", "index", "source", "result"},
                      [](Backward& b) -> Gradients { return backward_of<By::slice>(b, b("source")); }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("source").numel()}; },
     .examples = {"f32[5,3] 0 i64[2] f32[2,3] \"amax\""},
     .facts = {.in_place_too = true}}};

}  // namespace

Tables scatter_reduce_operators() {
  static constexpr Records tables[] = {kScatterReduce};
  return tables;
}

}  // namespace metaprof
