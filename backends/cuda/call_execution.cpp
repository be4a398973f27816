#include "backends/cuda/call_execution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "opcount/counts.h"

namespace metaprof::cuda {
namespace {

// Sides of the products that stand for other work: large enough for the rate of large ones.
constexpr int64_t kLargestSide = 2048, kSmallestSide = 64;

int64_t elements(SizesView sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

uint64_t sum_of_bytes(const auto& operands) {
  uint64_t sum = 0;
  for (const auto& operand : operands) sum += operand.bytes;
  return sum;
}

}  // namespace

std::vector<CallExecution::Operand> CallExecution::operands(uint32_t first, uint32_t count,
                                                            const Placements& placed) const {
  std::vector<Operand> out;
  for (uint32_t i = first; i < first + count; ++i) {
    const TensorRecord& tensor = trace_.tensors[i];
    if (tensor.storage == 0 || tensor.on_host || placed[tensor.storage].bytes == 0) continue;
    const Placed place = placed[tensor.storage];
    const auto bytes = static_cast<uint64_t>(elements(trace_.shape(tensor)) * element_size(tensor.dtype));
    out.push_back({&tensor, place, std::min(bytes, place.bytes)});
  }
  return out;
}

ReplayedAs CallExecution::run(const CallRecord& call, const CallCost& cost, const Placements& placed,
                              CUstream stream) {
  const std::vector<Operand> inputs = operands(call.first_tensor, call.inputs, placed);
  const std::vector<Operand> outputs = operands(call.first_tensor + call.inputs, call.outputs, placed);
  if (run_product(call, cost, inputs, outputs, stream)) return ReplayedAs::product;
  if (run_convolution(call, inputs, outputs, stream)) return ReplayedAs::convolution;
  if (run_copy(call, inputs, outputs, stream)) return ReplayedAs::copy;
  if (run_same_flops(call, cost, inputs, stream)) return ReplayedAs::same_flops;
  run_same_bytes(cost, inputs, outputs, stream);
  return ReplayedAs::same_bytes;
}

// The last two inputs are the factors, as in addmm, bmm and linear. The FLOPs say the inner size.
bool CallExecution::run_product(const CallRecord& call, const CallCost& cost,
                                const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                                CUstream stream) {
  if (call.kernel != Kernel::other || cost.counted.count == 0 || inputs.size() < 2 || outputs.empty())
    return false;
  const Operand &left = inputs[inputs.size() - 2], &right = inputs.back(), &result = outputs.front();
  const DType dtype = left.tensor->dtype;
  const SizesView sizes = trace_.shape(*result.tensor);
  if (!has_products_of(dtype) || right.tensor->dtype != dtype || result.tensor->dtype != dtype ||
      sizes.size() < 2)
    return false;
  const int64_t all = elements(sizes), size = element_size(dtype);
  Product product{
      .columns = sizes.back(), .dtype = dtype, .tf32 = dtype == DType::f32 && rates_.tf32_products};
  if (all == 0 || cost.counted.count % (2 * all) != 0) return false;
  product.inner = cost.counted.count / (2 * all);
  if (left.tensor->dims == 3 && right.tensor->dims == 3) product.batch = trace_.shape(*left.tensor)[0];
  product.rows = all / (product.batch * product.columns);
  const auto fits = [&](const Operand& operand, int64_t rows, int64_t columns) {
    return static_cast<uint64_t>(product.batch * rows * columns * size) <= operand.place.bytes;
  };
  if (!fits(left, product.rows, product.inner) || !fits(right, product.inner, product.columns) ||
      !fits(result, product.rows, product.columns))
    return false;
  products_.run(product, left.place.address, right.place.address, result.place.address, stream);
  return true;
}

// A forward has input and weight as its first inputs, and a result of other sizes; a backward the result's gradient, input and
// weight, and gradients of the sizes of these two, or one of them.
bool CallExecution::run_convolution(const CallRecord& call, const std::vector<Operand>& inputs,
                                    const std::vector<Operand>& outputs, CUstream stream) {
  if (!convolutions_ || call.kernel != Kernel::cudnn || inputs.size() < 2 || outputs.empty()) return false;
  const bool backward = op_packet_name(trace_.text(call.op)).ends_with("_backward");
  if (backward && inputs.size() < 3) return false;
  const Operand &x = inputs[backward ? 1 : 0], &w = inputs[backward ? 2 : 1],
                &y = backward ? inputs[0] : outputs[0];
  const auto sizes = [&](const Operand& operand) { return trace_.shape(*operand.tensor); };
  std::optional<ConvolutionQuestion> question =
      convolution_between(sizes(x), sizes(w), sizes(y), x.tensor->dtype);
  if (!question || w.tensor->dtype != question->dtype || y.tensor->dtype != question->dtype) return false;
  const auto run = [&](PlannedOp op, CUdeviceptr to) {
    question->op = op;
    const ConvolutionOperands operands{.x = op == PlannedOp::conv_dgrad ? to : x.place.address,
                                       .w = op == PlannedOp::conv_wgrad ? to : w.place.address,
                                       .y = op == PlannedOp::conv_fwd ? to : y.place.address};
    return convolutions_->run(*question, operands, scratch_, static_cast<int64_t>(scratch_bytes_), stream);
  };
  if (!backward) return run(PlannedOp::conv_fwd, y.place.address);
  bool all = true;
  for (const Operand& gradient : outputs) {
    if (std::ranges::equal(sizes(gradient), sizes(w)))
      all = all && run(PlannedOp::conv_wgrad, gradient.place.address);
    else if (std::ranges::equal(sizes(gradient), sizes(x)))
      all = all && run(PlannedOp::conv_dgrad, gradient.place.address);
  }
  return all;
}

// The framework copies between tensors of one type by cudaMemcpyAsync (aten/src/ATen/native/cuda/Copy.cu).
bool CallExecution::run_copy(const CallRecord& call, const std::vector<Operand>& inputs,
                             const std::vector<Operand>& outputs, CUstream stream) {
  const std::string op = op_packet_name(trace_.text(call.op));
  if (op != "aten.copy_" && op != "aten.clone" && op != "aten.contiguous") return false;
  if (inputs.empty() || outputs.empty()) return false;
  const Operand &from = inputs.back(), &to = outputs.front();
  if (from.tensor->dtype != to.tensor->dtype || from.bytes != to.bytes ||
      from.place.address == to.place.address)
    return false;
  driver().cuMemcpyDtoDAsync(to.place.address, from.place.address, to.bytes, stream);
  return true;
}

bool CallExecution::run_same_flops(const CallRecord& call, const CallCost& cost,
                                   const std::vector<Operand>& inputs, CUstream stream) {
  if (cost.counted.count == 0 || call.kernel == Kernel::depthwise) return false;
  const auto factor = std::ranges::find_if(
      inputs, [](const Operand& operand) { return has_products_of(operand.tensor->dtype); });
  if (factor == inputs.end()) return false;
  Product product{.dtype = factor->tensor->dtype};
  product.tf32 = product.dtype == DType::f32 &&
                 (call.kernel == Kernel::cudnn ? rates_.tf32_in_cudnn : rates_.tf32_products);
  const auto flops = static_cast<double>(cost.all.count);
  const auto side = static_cast<int64_t>(std::cbrt(flops / 2)) / 16 * 16;
  product.rows = product.columns = product.inner = std::clamp(side, kSmallestSide, kLargestSide);
  const uint64_t matrix = static_cast<uint64_t>(product.rows * product.columns * element_size(product.dtype));
  if (3 * matrix > scratch_bytes_) return false;
  const auto times = static_cast<int64_t>(std::llround(flops / product.flops()));
  for (int64_t i = 0; i < std::max<int64_t>(times, 1); ++i)
    products_.run(product, scratch_, scratch_ + matrix, scratch_ + 2 * matrix, stream);
  return true;
}

// Results are written whole; what is moved beyond that is read from the inputs, each by its share. Calls without results of
// their own write into their inputs what is moved beyond reading each once.
void CallExecution::run_same_bytes(const CallCost& cost, const std::vector<Operand>& inputs,
                                   const std::vector<Operand>& outputs, CUstream stream) {
  const auto moved = static_cast<uint64_t>(cost.moved.count);
  const uint64_t of_inputs = sum_of_bytes(inputs), of_outputs = sum_of_bytes(outputs);
  const bool in_place = of_outputs == 0;
  uint64_t written = in_place ? moved - std::min(moved, of_inputs) : std::min(moved, of_outputs);
  if (of_inputs == 0) written = moved;
  std::vector<Region> reads, writes;
  const auto share = [](const std::vector<Operand>& operands, uint64_t amount, uint64_t all,
                        std::vector<Region>& regions) {
    for (const Operand& operand : operands) {
      const double part = static_cast<double>(operand.bytes) / static_cast<double>(all);
      const auto bytes = static_cast<uint64_t>(part * static_cast<double>(amount));
      if (bytes > 0) regions.push_back({operand.place.address, operand.bytes, bytes});
    }
  };
  if (of_inputs > 0) share(inputs, moved - written, of_inputs, reads);
  const std::vector<Operand>& written_to = in_place ? inputs : outputs;
  if (written > 0 && sum_of_bytes(written_to) > 0)
    share(written_to, written, sum_of_bytes(written_to), writes);
  kernels_.spend(reads, writes, static_cast<double>((cost.all).count), stream);
}

}  // namespace metaprof::cuda
