// The sum of a diagonal.

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

void trace_cuda(Call& c) {
  const Tensor diagonal = call<"diagonal">(c.session, c["self"]);
  const Tensor total = sum(diagonal);
  c.adopt(0, total);
}

// Places on the diagonal go on below a square until 2.14 (recorded: `opinfo/trace/1`).
template <bool within_rows>
void trace_backward_body(Call& c) {
  const Sizes& sizes = c.ints("sizes");
  if (sizes.size() != 2) c.error("expects the sizes of a matrix");
  const Tensor zeros = zeros_of(c.tensor("grad"), Sizes{sizes[0] * sizes[1]});
  const int64_t end = within_rows ? std::min(sizes[0], sizes[1]) * (sizes[1] + 1) : zeros.numel();
  const Tensor places =
      call<"arange.start_step">(c.session, 0, end, sizes[1] + 1, DType::i64, Value(), zeros.device());
  call<"index_fill_.int_Tensor">(c.session, zeros, 0, places, c["grad"]);
  c.result(view(zeros, sizes));
}

constexpr Op trace_gradient(void (*body)(Call&)) {
  return composite_of("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor",
                      "the gradient on the diagonal of zeros", body, {"f32[] (3 3)"});
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
    before({2, 15}, trace_gradient(trace_backward_body<false>)),
    since({2, 15}, trace_gradient(trace_backward_body<true>))};

}  // namespace

Tables trace_operators() {
  static constexpr Records tables[] = {kTrace};
  return tables;
}

}  // namespace metaprof
