// Reductions of parts of a dimension (native/SegmentReduce.cpp, native/cuda/SegmentReduce.cu; recorded:
// `opinfo/_segment_reduce.lengths`, `opinfo/_segment_reduce.offsets`).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// What is kept per part: how many elements it has, or where it begins and the last one ends.
const Tensor& parts_of(const Call& c) {
  return c.given("lengths") ? c.tensor("lengths") : c.tensor("offsets");
}

void segment_meta(Call& c) {
  const Tensor& data = c.tensor("data");
  if (!c.given("lengths") && !c.given("offsets")) c.error("expects lengths or offsets");
  const int64_t axis = wrap_dim(c.integer("axis"), data.dim());
  if (axis != parts_of(c).dim() - 1)
    c.error(fmt::format("expects parts along dimension {}, got {}", axis, describe(parts_of(c))));
  Sizes sizes = data.sizes();
  sizes[size_t(axis)] = parts_of(c).size(-1) - (c.given("lengths") ? 0 : 1);
  c.output(sizes, data.dtype());
}

// The host looks whether lengths are possible.
void check_lengths(Call& c) {
  const Tensor& lengths = c.tensor("lengths");
  call<"min">(c.session, lengths);
  const Tensor totals = sum(lengths, Sizes{-1}, false);
  const Tensor same = eq(totals, c.tensor("data").size(-1));
  call<"all">(c.session, same);
}

// The other of lengths and offsets, for as long as the kernel runs.
Tensor other_form(Call& c) {
  if (!c.given("lengths")) return call<"diff">(c.session, c.tensor("offsets"));
  const Tensor& lengths = c.tensor("lengths");
  Sizes first = lengths.sizes();
  first.back() = 1;
  Tensor offsets;
  {
    const Tensor zero = call<"zeros">(c.session, first, lengths.dtype(), Value(), lengths.device());
    offsets = cat({zero, lengths}, lengths.dim() - 1);
  }
  return call<"cumsum_">(c.session, offsets, lengths.dim() - 1);
}

// One row of parts is reduced by CUB, which takes a byte.
void segment_cuda(Call& c) {
  if (c.given("lengths") && !c.boolean("unsafe")) check_lengths(c);
  c.allocate(0);
  const Tensor other = other_form(c);
  if (c.tensor("data").dim() == 1) c.temporary_bytes(1);
}

void segment_backward_meta(Call& c) { c.output(c.tensor("data").sizes(), c.tensor("data").dtype()); }

void segment_backward_cuda(Call& c) {
  c.allocate(0);
  const Tensor other = other_form(c);
}

Gradients segment_gradient(Backward& b) {
  return {call<"_segment_reduce_backward">(b.session, b.grad(), b("result"), b("data"), b["reduce"],
                                           b("lengths"), b("offsets"), b["axis"], b["initial"])};
}

FlopCount segment_flops(const Call& c) { return {.own = c.tensor("data").numel()}; }

constexpr Op kSegments[] = {
    {.schema = "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
               "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
     .summary = "parts of a dimension, each reduced to one element",
     .meta = segment_meta,
     .host_code = {{DeviceType::cuda, segment_cuda}},
     .derivatives = {{{"data"}, {"data", "lengths", "offsets", "result"}, segment_gradient}},
     .flops = segment_flops,
     .examples = {"f32[5] \"max\" None None i64[4]", "f32[5,2] \"mean\" i64[3] None None 0 True"},
     .facts = {.takes = "data.dim > 0, lengths.dim > 0, offsets.dim > 0", .host_reads = true}},
    {.schema = "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? "
               "lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
     .summary = "each element's share of its part's gradient",
     .meta = segment_backward_meta,
     .host_code = {{DeviceType::cuda, segment_backward_cuda}},
     .derivatives = {{{"grad", "data"}, {}, not_implemented}},
     .flops = segment_flops,
     .examples = {"f32[3] f32[3] f32[5] \"max\" None i64[4]"},
     .facts = {.takes = "data.dim > 0, lengths.dim > 0, offsets.dim > 0"}}};

}  // namespace

Tables segment_operators() {
  static constexpr Records tables[] = {kSegments};
  return tables;
}

}  // namespace metaprof
