// Are two tensors equal? The answer is read from the device.

#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

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

constexpr Op kEquality[] = {
    {.schema = "equal(Tensor self, Tensor other) -> bool",
     .summary = "whether all elements are the same",
     .meta = [](Call& c) { c.result(Value(true)); },
     .host_code = {{DeviceType::cuda, equal_cuda}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.reads_data = true, .host_reads = true}},
    composite_of("allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, "
                 "bool equal_nan=False) -> bool",
                 "whether |self − other| ≤ atol + rtol · |other| everywhere", allclose_body,
                 {"f32[2,3] f32[2,3]"}, {.cudagraph_unsafe = true, .reads_data = true}),
    composite_of("_is_all_true(Tensor self) -> Tensor", "whether all of some truth values are true",
                 [](Call& c) { c.result(call<"all">(c.session, c["self"])); }, {"b8[2,3]"}),
    composite_of("_is_any_true(Tensor self) -> Tensor", "whether any of some truth values is true",
                 [](Call& c) { c.result(call<"any">(c.session, c["self"])); }, {"b8[2,3]"})};

}  // namespace

Tables equality_operators() {
  static constexpr Records tables[] = {kEquality};
  return tables;
}

}  // namespace metaprof
