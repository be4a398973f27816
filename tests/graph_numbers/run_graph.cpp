#include "tests/graph_numbers/run_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"

namespace metaprof::ir {
namespace {

const Platform& test_platform() {
  static const Platform platform = platform_named("h200");
  return platform;
}

std::string difference(const char* what, const std::vector<Numbers>& a, const std::vector<Numbers>& b) {
  if (a.size() != b.size()) return fmt::format("{} {}, not {}", a.size(), what, b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size())
      return fmt::format("{} {} has {} elements, not {}", what, i, a[i].size(), b[i].size());
    for (size_t e = 0; e < a[i].size(); ++e) {
      const double x = a[i][e], y = b[i][e];
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-9 + 1e-7 * std::abs(y))
        continue;
      return fmt::format("{} {}, element {}: {}, not {}", what, i, e, x, y);
    }
  }
  return {};
}

}  // namespace

GraphRun::GraphRun(uint64_t seed) : session(make_session(test_platform())), seed_(seed) {
  session->device = kHost;
  numbers = std::make_unique<CpuNumbers>(*session);
  CpuNumbers::seed(seed);
}

GraphRun::~GraphRun() = default;

Tensor GraphRun::filled(SizesView sizes, DType dtype, bool requires_grad) {
  Tensor tensor = session->empty(sizes, dtype, kHost);
  Numbers values(static_cast<size_t>(tensor.numel()));
  for (double& value : values) {
    const uint64_t mixed =
        (seed_ * 6364136223846793005ULL + ++drawn_ * 1442695040888963407ULL) * 2862933555777941757ULL;
    value = static_cast<double>(mixed >> 40) / double(1 << 23) - 1;  // in [-1, 1)
  }
  if (!is_floating(dtype))
    for (double& value : values) value = std::floor(value * 4) + 4;
  at::Tensor data = numbers->of(tensor).view({tensor.numel()});
  for (size_t i = 0; i < values.size(); ++i) data.select(0, static_cast<int64_t>(i)).fill_(values[i]);
  tensor->requires_grad = requires_grad;
  return tensor;
}

std::vector<metaprof::Value> GraphRun::arguments(const Graph& graph, const std::vector<int64_t>& integers) {
  std::vector<metaprof::Value> arguments;
  size_t next = 0;
  for (const auto& input : graph.block().inputs()) {
    const Type& type = input->type;
    if (type.kind == Type::Kind::integer) {
      arguments.emplace_back(integers.at(next++));
    } else if (type.kind == Type::Kind::boolean) {
      arguments.emplace_back(integers.at(next++) != 0);
    } else if (type.is_tensor() && type.tensor.rank) {
      Sizes sizes;
      for (int i = 0; i < *type.tensor.rank; ++i) sizes.push_back(type.tensor.sizes.at(size_t(i)).value());
      arguments.emplace_back(
          filled(sizes, type.tensor.dtype.value(), type.tensor.requires_grad.value_or(false)));
    } else {
      arguments.emplace_back();
    }
  }
  return arguments;
}

Numbers GraphRun::read(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor data = numbers->of(tensor).to(at::kDouble).contiguous();
  return {data.data_ptr<double>(), data.data_ptr<double>() + data.numel()};
}

GraphResult GraphRun::run(GraphExecutor& executor, std::vector<metaprof::Value> arguments, bool second) {
  GraphResult result;
  std::vector<Tensor> leaves, roots, incoming;
  for (const metaprof::Value& value : arguments)
    if (value.is_tensor() && value.tensor().requires_grad()) leaves.push_back(value.tensor());
  try {
    for (const metaprof::Value& output : executor.run(*session, std::move(arguments))) {
      const auto take = [&](const Tensor& tensor) {
        result.outputs.push_back(read(tensor));
        if (!tensor.defined() || !is_floating(tensor.dtype())) return;
        // Drawn for every output, so that two runs draw the same, whichever outputs require grad in each.
        const Tensor gradient = filled(tensor.sizes(), tensor.dtype(), false);
        if (!tensor.requires_grad()) return;
        roots.push_back(tensor);
        incoming.push_back(gradient);
      };
      if (output.is_tensors())
        for (const Tensor& tensor : output.tensors()) take(tensor);
      else if (output.is_tensor())
        take(output.tensor());
      else
        result.outputs.push_back({output.is_number() ? output.real() : 0});
    }
    if (roots.empty() || leaves.empty()) return result;
    const size_t calls = session->trace.calls.size();
    const Gradients found =
        grad(*session, roots, leaves, incoming, {.create_graph = second, .allow_unused = true});
    for (size_t i = calls; i < session->trace.calls.size(); ++i)
      result.flops += session->trace.calls[i].counted.count + session->trace.calls[i].own.count;
    for (const Tensor& gradient : found) result.gradients.push_back(read(gradient));
    if (!second) return result;
    roots.clear();
    incoming.clear();
    for (const Tensor& gradient : found) {
      if (!gradient.defined()) continue;
      const Tensor second_gradient = filled(gradient.sizes(), gradient.dtype(), false);
      if (!gradient.requires_grad()) continue;
      roots.push_back(gradient);
      incoming.push_back(second_gradient);
    }
    if (roots.empty()) return result;
    for (const Tensor& gradient : grad(*session, roots, leaves, incoming, {.allow_unused = true}))
      result.second_gradients.push_back(read(gradient));
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

ExecutorOptions test_options(bool optimise, ExecutorCounters* counters) {
  return {.context = {.registry = standard_registry(), .platform = test_platform()},
          .compile = {},
          .optimise = optimise,
          .counters = counters};
}

namespace {

// Whether a value requires grad is known of the kinds of arguments only, and not of the branch that is taken: a gradient
// that nothing leads to may come as zeros.
std::vector<Numbers> without_zeros(std::vector<Numbers> found, const std::vector<Numbers>& expected) {
  const auto all_zero = [](const Numbers& numbers) {
    return std::ranges::all_of(numbers, [](double n) { return n == 0; });
  };
  if (expected.empty() && std::ranges::all_of(found, all_zero)) return {};
  for (size_t i = 0; i < found.size() && i < expected.size(); ++i)
    if (expected[i].empty() && all_zero(found[i])) found[i].clear();
  return found;
}

}  // namespace

std::string difference(const GraphResult& a, const GraphResult& b) {
  if (a.error != b.error) return fmt::format("error '{}', not '{}'", a.error, b.error);
  for (const std::string& found :
       {difference("outputs", a.outputs, b.outputs),
        difference("gradients", without_zeros(a.gradients, b.gradients), b.gradients),
        difference("second gradients", a.second_gradients, b.second_gradients)})
    if (!found.empty()) return found;
  return {};
}

}  // namespace metaprof::ir
