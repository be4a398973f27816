#include "backends/cuda/convolutions.h"

#include <algorithm>

#include "core/error.h"
#include "core/rounding.h"
#include "meta/platform/cudnn/cudnn_convolution.h"

namespace metaprof::cuda {
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";

using Integers = ConvolutionQuestion::Integers;

Integers dense_strides(const Integers& sizes) {
  Integers strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return strides;
}

// The framework gives cuDNN a dimension more in place of one spatial dimension.
Integers in_two_dimensions(SizesView sizes) {
  if (sizes.size() == 3) return {sizes[0], sizes[1], 1, sizes[2]};
  return {sizes.begin(), sizes.end()};
}

}  // namespace

std::optional<ConvolutionQuestion> convolution_between(SizesView x, SizesView w, SizesView y, DType dtype) {
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size() || y.size() != x.size()) return std::nullopt;
  ConvolutionQuestion q;
  q.dtype = dtype;
  q.x = in_two_dimensions(x);
  q.w = in_two_dimensions(w);
  const Integers out = in_two_dimensions(y);
  const auto positive = [](const Integers& sizes) {
    return std::ranges::all_of(sizes, [](int64_t s) { return s > 0; });
  };
  if (!positive(q.x) || !positive(q.w) || !positive(out)) return std::nullopt;
  if (q.x[0] != out[0] || q.w[0] != out[1] || q.x[1] % q.w[1] != 0) return std::nullopt;
  for (size_t d = 2; d < out.size(); ++d) {
    const int64_t stride = std::max<int64_t>(1, (q.x[d] + out[d] / 2) / out[d]);
    const int64_t missing = (out[d] - 1) * stride + q.w[d] - q.x[d];
    const int64_t padding = missing > 0 ? divide_up(missing, 2) : 0;
    if ((q.x[d] + 2 * padding - q.w[d]) / stride + 1 != out[d]) return std::nullopt;
    q.stride.push_back(stride);
    q.padding.push_back(padding);
    q.dilation.push_back(1);
  }
  q.x_strides = dense_strides(q.x);
  q.w_strides = dense_strides(q.w);
  q.y_strides = dense_strides(out);
  return q;
}

Convolutions::Convolutions() : functions_(kLibrary), library_(kLibrary) {
  if (const int status = functions_.function<int(void**)>("cudnnCreate")(&handle_); status != 0)
    fail("cudnnCreate: status {}", status);
}

Convolutions::~Convolutions() {
  plans_.clear();
  functions_.function<int(void*)>("cudnnDestroy")(handle_);
}

cudnn::Descriptor Convolutions::find_plan(cudnn::Descriptors& made, const ConvolutionQuestion& question,
                                          int64_t workspace_bytes) {
  constexpr int instant = 0, fallback = 2;  // heuristic modes, in PyTorch's order
  const cudnn::Descriptor graph = cudnn::operation_graph(made, question, handle_);
  for (const int mode : {instant, fallback}) {
    const cudnn::Descriptor heuristics = made.make(cudnn::Kind::heuristics);
    made.set(heuristics, 201, graph);
    made.set_number(heuristics, 200, cudnn::Type::heuristic_mode, mode);
    if (!made.try_to_finish(heuristics)) continue;
    for (cudnn::Descriptor configuration : made.held(heuristics, 202, cudnn::Kind::engine_configuration)) {
      if (cudnn::is_left_out(made, configuration, question)) continue;
      const cudnn::Descriptor plan = made.make(cudnn::Kind::execution_plan);
      made.set(plan, 400, cudnn::Type::handle, 1, &handle_);
      made.set(plan, 401, configuration);
      if (made.try_to_finish(plan) && made.integer(plan, 402) <= workspace_bytes) return plan;
    }
  }
  return nullptr;
}

Convolutions::Plan& Convolutions::plan_for(const ConvolutionQuestion& question, int64_t workspace_bytes) {
  std::unique_ptr<Plan>& plan = plans_[to_text(question.plan())];
  if (plan) return *plan;
  plan = std::make_unique<Plan>(library_);
  try {
    plan->plan = find_plan(plan->made, question, workspace_bytes);
  } catch (const Error&) {  // cuDNN refuses this operation
  }
  return *plan;
}

bool Convolutions::run(const ConvolutionQuestion& question, const ConvolutionOperands& operands,
                       CUdeviceptr workspace, int64_t workspace_bytes, CUstream stream) {
  Plan& plan = plan_for(question, workspace_bytes);
  if (!plan.plan) return false;
  cudnn::Descriptors made(library_);
  const cudnn::Descriptor pack = made.make(cudnn::Kind::variant_pack);
  const Integers names = {'x', 'w', 'y'};
  const CUdeviceptr addresses[] = {operands.x, operands.w, operands.y};
  made.set(pack, 1000, names);
  made.set(pack, 1001, cudnn::Type::pointer, 3, addresses);
  made.set(pack, 1003, cudnn::Type::pointer, 1, &workspace);
  made.finish(pack);
  functions_.function<int(void*, CUstream)>("cudnnSetStream")(handle_, stream);
  using Execute = int(void*, cudnn::Descriptor, cudnn::Descriptor);
  const int status = functions_.function<Execute>("cudnnBackendExecute")(handle_, plan.plan, pack);
  if (status != 0) plan.plan = nullptr;
  return status == 0;
}

}  // namespace metaprof::cuda
