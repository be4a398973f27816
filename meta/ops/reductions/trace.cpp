// The sum of a diagonal.

#include "meta/autograd/backward.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

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

constexpr Op kTrace[] = {
    {.schema = "trace(Tensor self) -> Tensor",
     .summary = "sum of the diagonal",
     .meta =
         [](Call& c) {
           const DType dtype = c.tensor("self").dtype();
           c.output({}, is_integral(dtype, true) ? DType::i64 : dtype);
         },
     .host_code = {{DeviceType::cuda, trace_cuda}},
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) {
                        return call<"trace_backward">(b.session, b.grad(), b.sizes("self"));
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("self").size(0)}; },
     .examples = {"f32[3,3]"}},
    composite_of("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor",
                 "the gradient on the diagonal of zeros", trace_backward_body, {"f32[] (3 3)"})};

}  // namespace

Tables trace_operators() {
  static constexpr Records tables[] = {kTrace};
  return tables;
}

}  // namespace metaprof
