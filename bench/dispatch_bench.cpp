// What the machinery costs per dispatched operator, backward node and saved tensor. CPU time of one thread.

#include <benchmark/benchmark.h>

#include "meta/autograd/engine.h"
#include "meta/ops/all.h"
#include "meta/ops/functions.h"

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
  auto session = make_session(*find_device("h200"));
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
  auto session = make_session(*find_device("h200"));
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
  auto session = make_session(*find_device("h200"));
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

// The whole life of a chain: forward, backward, destruction.
void chain_forward_and_backward(benchmark::State& state) {
  auto session = make_session(*find_device("h200"));
  const Tensor input = leaf(*session);
  for (auto _ : state) {
    clear_trace(*session);
    const Tensor roots[] = {sum(chain(input, kChain))};
    backward(*session, roots);
    input->extra->grad.reset();
  }
}
BENCHMARK(chain_forward_and_backward)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace metaprof
