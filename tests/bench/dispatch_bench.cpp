// What the machinery costs per dispatched operator, backward node and saved tensor. CPU time of one thread.

#include <benchmark/benchmark.h>

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/saved_tensor.h"
#include "meta/ops/all.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"
#include "tests/autograd/hessian_network.h"

namespace metaprof {
namespace {

constexpr int kChain = 10000;

Tensor leaf(Session& session) {
  Tensor tensor = session.empty(Sizes{64, 64}, DType::f32);
  tensor->requires_grad = true;
  return tensor;
}

// A fresh trace, with the room that it had before: what a second step finds.
void clear_trace(Session& session) {
  session.trace.events.clear();
  session.trace.calls.clear();
  session.trace.nodes.clear();
  session.trace.tensors.clear();
  session.trace.numbers.clear();
  session.trace.edges.clear();
  session.trace.storages.resize(1);
}

Tensor chain(Tensor value, int length) {
  for (int i = 0; i < length; ++i) value = call<"tanh">(session_of(value), value);
  return value;
}

// tanh: one result, one node, one saved tensor; gradient recorded, trace written.
void dispatched_op(benchmark::State& state) {
  auto session = make_session(platform_named("h200"));
  const Tensor input = leaf(*session);
  for (auto _ : state) {
    Tensor end = chain(input, kChain);
    state.PauseTiming();
    end = Tensor();
    clear_trace(*session);
    state.ResumeTiming();
  }
  state.counters["per_op"] = benchmark::Counter(double(kChain) * double(state.iterations()),
                                                benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(dispatched_op);

void dispatched_op_without_gradient(benchmark::State& state) {
  auto session = make_session(platform_named("h200"));
  const Tensor input = leaf(*session);
  session->modes.grad = false;
  for (auto _ : state) {
    Tensor end = chain(input, kChain);
    state.PauseTiming();
    end = Tensor();
    clear_trace(*session);
    state.ResumeTiming();
  }
  state.counters["per_op"] = benchmark::Counter(double(kChain) * double(state.iterations()),
                                                benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(dispatched_op_without_gradient);

// tanh backward: one node, one unpacked tensor, one dispatched operator.
void backward_node(benchmark::State& state) {
  auto session = make_session(platform_named("h200"));
  const Tensor input = leaf(*session);
  for (auto _ : state) {
    state.PauseTiming();
    clear_trace(*session);
    Tensor end = sum(chain(input, kChain));
    state.ResumeTiming();
    const Tensor roots[] = {end};
    backward(*session, roots);
    state.PauseTiming();
    end = Tensor();
    input->extra->grad.reset();
    state.ResumeTiming();
  }
  state.counters["per_node"] = benchmark::Counter(double(kChain) * double(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(backward_node);

// A tensor that a node keeps: saved, unpacked and let go of.
void saved_tensor(benchmark::State& state) {
  auto session = make_session(platform_named("h200"));
  const Tensor input = leaf(*session);
  struct Keeper final : Node {
    explicit Keeper(Session& session) : Node(session, "Keeper", 0) {}
    Gradients apply(Gradients&) override { return {}; }
  };
  const Ref<Node> node = make<Keeper>(*session);
  for (auto _ : state) {
    SavedTensor saved(input, *node, false);
    benchmark::DoNotOptimize(saved.unpack(*node));
    saved.release();
    session->trace.events.clear();
  }
}
BENCHMARK(saved_tensor);

// The whole life of a chain: forward, backward, destruction.
void chain_forward_and_backward(benchmark::State& state) {
  auto session = make_session(platform_named("h200"));
  const Tensor input = leaf(*session);
  for (auto _ : state) {
    clear_trace(*session);
    const Tensor roots[] = {sum(chain(input, kChain))};
    backward(*session, roots);
    input->extra->grad.reset();
  }
}
BENCHMARK(chain_forward_and_backward)->Unit(benchmark::kMillisecond);

// What trimming saves on the Hessian of a network: FLOPs and saved bytes, untrimmed over trimmed.
void hessian(benchmark::State& state) {
  const bool final_backward = state.range(0) != 0;
  HessianCost trimmed, untrimmed;
  for (auto _ : state) trimmed = run_hessian({}, true, final_backward);
  untrimmed = run_hessian({}, false, final_backward);
  state.counters["flops"] =
      double(untrimmed.flops + untrimmed.flops_backward) / double(trimmed.flops + trimmed.flops_backward);
  state.counters["saved_bytes"] = double(untrimmed.saved_bytes) / double(trimmed.saved_bytes);
}
BENCHMARK(hessian)->ArgName("final_backward")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace metaprof
