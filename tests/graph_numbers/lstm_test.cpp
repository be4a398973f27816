// An LSTM with control flow: a loop over time, and a branch, since the first state is zeros and needs no product. The
// graph is what TorchScript made of its Python source (tests/data/graph_executor); eager execution is the same source
// as C++, one call after the other.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "step/compiled/ir/text.h"
#include "tests/graph_numbers/run_graph.h"
#include "tests/read_file.h"

namespace metaprof::ir {
namespace {

constexpr int64_t kInput = 6, kHidden = 5, kBatch = 2;

std::shared_ptr<Graph> recorded_lstm() {
  const auto recorded = nlohmann::json::parse(read_file("tests/data/graph_executor/recorded.json"));
  for (const auto& function : recorded.at("functions"))
    if (function.at("name") == "lstm")
      return parse_graph(function.at("graph").get<std::string>(), standard_registry());
  return nullptr;
}

// tools/record/record_graph_executor.py: lstm
std::vector<Tensor> eager_lstm(Session& session, const std::vector<metaprof::Value>& arguments) {
  const auto tensor = [&](size_t i) { return arguments[i].tensor(); };
  Tensor h = tensor(1), c = tensor(2);
  for (int64_t t = 0; t < arguments[7].integer(); ++t) {
    Tensor gates =
        call<"linear">(session, call<"select.int">(session, tensor(0), 0, t), tensor(3), tensor(5));
    if (t > 0) gates = call<"add.Tensor">(session, gates, call<"linear">(session, h, tensor(4), tensor(6)));
    const Results parts = call_all<"chunk">(session, gates, 4, 1);
    const auto gate = [&](size_t i) { return call<"sigmoid">(session, parts.tensors()[i]); };
    c = call<"add.Tensor">(session, call<"mul.Tensor">(session, gate(1), c),
                           call<"mul.Tensor">(session, gate(0), call<"tanh">(session, parts.tensors()[2])));
    h = call<"mul.Tensor">(session, gate(3), call<"tanh">(session, c));
  }
  return {h, c};
}

std::vector<Tensor> graph_lstm(GraphExecutor& executor, Session& session,
                               const std::vector<metaprof::Value>& arguments) {
  const auto results = executor.run(session, arguments);
  return {results[0].tensor(), results[1].tensor()};
}

// Of the states' sum, of all arguments that require grad.
Gradients gradients_of(Session& session, const std::vector<Tensor>& states,
                       const std::vector<metaprof::Value>& arguments) {
  std::vector<Tensor> leaves, ones;
  for (const metaprof::Value& argument : arguments)
    if (argument.is_tensor() && argument.tensor().requires_grad()) leaves.push_back(argument.tensor());
  for (const Tensor& state : states) ones.push_back(call<"ones_like">(session, state));
  return grad(session, states, leaves, ones, {.allow_unused = true});  // the first state is not used
}

class LstmInGraph : public ::testing::TestWithParam<int64_t> {};

// The loop is unrolled by eight, whatever the number of steps: 2 are the rest of it, 8 one round, 11 one round and a
// rest of 3.
TEST_P(LstmInGraph, ComputesWhatEagerComputes) {
  const auto graph = recorded_lstm();
  const int64_t steps = GetParam();
  const std::vector<Sizes> sizes = {
      {steps, kBatch, kInput}, {kBatch, kHidden}, {kBatch, kHidden}, {4 * kHidden, kInput},
      {4 * kHidden, kHidden},  {4 * kHidden},     {4 * kHidden}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    TensorDetail detail;
    detail.dtype = DType::f64;
    detail.rank = static_cast<int>(sizes[i].size());
    detail.sizes.assign(sizes[i].begin(), sizes[i].end());
    detail.requires_grad = true;
    graph->block().input(i)->type = Type(detail);
  }
  GraphExecutor executor(graph, test_options());
  GraphRun in_graph, eager;
  const auto a = in_graph.arguments(*graph, {steps}), b = eager.arguments(*graph, {steps});
  const std::vector<Tensor> found = graph_lstm(executor, *in_graph.session, a);
  const std::vector<Tensor> expected = eager_lstm(*eager.session, b);
  GraphResult found_numbers, expected_numbers;
  for (size_t i = 0; i < 2; ++i) {
    found_numbers.outputs.push_back(in_graph.read(found[i]));
    expected_numbers.outputs.push_back(eager.read(expected[i]));
  }
  for (const Tensor& gradient : gradients_of(*in_graph.session, found, a))
    found_numbers.gradients.push_back(in_graph.read(gradient));
  for (const Tensor& gradient : gradients_of(*eager.session, expected, b))
    expected_numbers.gradients.push_back(eager.read(gradient));
  EXPECT_EQ(difference(found_numbers, expected_numbers), "") << explain(executor);
  EXPECT_EQ(expected_numbers.gradients.size(), 7u);
}

INSTANTIATE_TEST_SUITE_P(Steps, LstmInGraph, ::testing::Values(2, 8, 11));

constexpr int64_t kUnits = 256;

struct Figures {
  int64_t peak = 0, saved = 0;
  int64_t flops = 0;  // of products
};

// Of device memory; what is kept counts once for each storage.
Figures figures_of(const Trace& trace) {
  Figures figures;
  int64_t now = 0;
  std::set<uint32_t> kept;
  for (const Event& event : trace.events) {
    const int64_t bytes =
        event.kind == Event::Kind::alloc || event.kind == Event::Kind::free || event.kind == Event::Kind::save
            ? trace.storages[event.id].bytes.count
            : 0;
    if (event.kind == Event::Kind::alloc) now += bytes;
    if (event.kind == Event::Kind::free) now -= bytes;
    if (event.kind == Event::Kind::save && kept.insert(event.id).second) figures.saved += bytes;
    figures.peak = std::max(figures.peak, now);
  }
  for (const CallRecord& call : trace.calls) figures.flops += call.counted.count;
  return figures;
}

template <class Run>
Figures figures(Run run) {
  const auto session = make_session(test_options().context.platform);
  const int64_t steps = 11, batch = 32, hidden = kUnits;
  std::vector<metaprof::Value> arguments;
  for (const Sizes& sizes :
       {Sizes{steps, batch, hidden}, Sizes{batch, hidden}, Sizes{batch, hidden}, Sizes{4 * hidden, hidden},
        Sizes{4 * hidden, hidden}, Sizes{4 * hidden}, Sizes{4 * hidden}}) {
    Tensor tensor = session->empty(sizes, DType::f32, kFirstGpu);
    tensor->requires_grad = true;
    arguments.emplace_back(std::move(tensor));
  }
  arguments.emplace_back(steps);
  const std::vector<Tensor> states = run(*session, arguments);
  gradients_of(*session, states, arguments);
  return figures_of(session->trace);
}

// A differentiable graph gives its gradients together: that of a bias waits until the weight's is summed, too. The
// formula of a linear layer keeps its bias for its size.
TEST(FiguresOfAnLstmInGraph, AreThoseOfEagerAndOneGradientOfABias) {
  GraphExecutor executor(recorded_lstm(), test_options());
  const Figures graph = figures([&](Session& session, const std::vector<metaprof::Value>& arguments) {
    return graph_lstm(executor, session, arguments);
  });
  const Figures eager = figures(eager_lstm);
  const int64_t bias = 4 * kUnits * 4;  // of four gates, in floats
  EXPECT_LE(graph.peak, eager.peak + bias);
  EXPECT_EQ(graph.saved, eager.saved + bias);
  EXPECT_EQ(graph.flops, eager.flops);
}

}  // namespace
}  // namespace metaprof::ir
