// What PyTorch's own graph executor did with scripted functions (tools/record/record_graph_executor.py), against ours: which
// operators lie in differentiable graphs, what is kept for the backward, how many plans there are after calls whose
// arguments change, and how many plans their gradients have after backwards from some results. And with numbers: what
// is compiled of the functions computes what they compute one operator after the other.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "step/compiled/executor/differentiable_code.h"
#include "step/compiled/ir/text.h"
#include "tests/graph_numbers/run_graph.h"
#include "tests/read_file.h"

namespace metaprof::ir {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

const Json& recorded() {
  static const Json recorded = Json::parse(read_file("tests/data/graph_executor/recorded.json"));
  return recorded;
}

std::string without_overload(std::string_view name) { return std::string(name.substr(0, name.find('.'))); }

// Numbers that formulas compute in the forward, of sizes and dtypes, are no operators here.
bool is_operator(const std::string& name) {
  static const std::set<std::string> kNumbers = {"aten::size", "aten::_size_if_not_equal", "aten::numel",
                                                 "prim::dtype", "prim::BroadcastSizes"};
  return !kNumbers.contains(name);
}

void add_operators(const Graph& graph, Names& names) {
  for (const Node* node : graph.nodes()) {
    if (node->is(Kind::fusion_group)) add_operators(*node->graph("graph"), names);
    if (node->is(Kind::call)) names.push_back(without_overload(node->name));
    if (node->is(Kind::constant_chunk)) names.push_back(node->name);
  }
}

void add_differentiable(const Block& block, std::vector<Names>& graphs) {
  for (const Node* node : block.nodes()) {
    if (node->is(Kind::differentiable_graph)) add_operators(*node->graph("graph"), graphs.emplace_back());
    for (const auto& inner : node->blocks) add_differentiable(*inner, graphs);
  }
}

std::vector<Names> recorded_graphs(const Json& function) {
  std::vector<Names> graphs;
  for (const Json& graph : function.at("graphs")) {
    Names& names = graphs.emplace_back();
    // The formula of cat computes lengths in a loop, of which the recording has every node.
    const bool has_cat = !graph.empty() && graph[0] == "aten::cat";
    for (const Json& operator_name : graph) {
      const std::string name = operator_name;
      if (has_cat && name != "aten::cat" && name != "aten::exp") continue;
      if (is_operator(name)) names.push_back(name);
    }
  }
  return graphs;
}

std::vector<Names> sorted(std::vector<Names> graphs) {
  for (Names& names : graphs) std::sort(names.begin(), names.end());
  std::sort(graphs.begin(), graphs.end());
  return graphs;
}

std::vector<metaprof::Value> arguments_of(Session& session, const Json& arguments) {
  std::vector<metaprof::Value> made;
  for (const Json& one : arguments) {
    if (one.contains("int")) {
      made.emplace_back(one.at("int").get<int64_t>());
      continue;
    }
    Sizes sizes;
    for (const Json& size : one.at("sizes")) sizes.push_back(size.get<int64_t>());
    Tensor tensor = session.empty(sizes, one.at("dtype") == "f64" ? DType::f64 : DType::f32, kHost);
    tensor->requires_grad = one.at("grad").get<bool>();
    made.emplace_back(std::move(tensor));
  }
  return made;
}

std::vector<Tensor> roots_of(const std::vector<metaprof::Value>& outputs, const std::string& from) {
  std::vector<Tensor> roots;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (from == "all" || i == (from == "first" ? 0 : outputs.size() - 1))
      if (outputs[i].is_tensor() && outputs[i].tensor().requires_grad()) roots.push_back(outputs[i].tensor());
  return roots;
}

// A saved tensor was written to, which is an error in both. Other errors that are recorded are the framework's own.
bool is_refused_by_autograd(const Json& backward) {
  return backward.contains("error") && backward.at("error").get<std::string>().find(
                                           "modified by an inplace operation") != std::string::npos;
}

// Their formula concatenates the gradients of chunks, of which one is not there, which the framework finds by sizes that
// do not fit.
bool fails_at_chunks(const Json& backward) { return !backward.contains("plans"); }

Type type_of_argument(const Json& argument) {
  TensorDetail detail;
  detail.dtype = DType::f64;  // so that rounding is no question
  for (const Json& size : argument.at("sizes")) detail.sizes.emplace_back(size.get<int64_t>());
  detail.rank = static_cast<int>(detail.sizes.size());
  detail.requires_grad = argument.at("grad").get<bool>();
  return Type(detail);
}

// What is kept: saved tensors, and the bytes of their storages, each once.
struct Saved {
  int64_t tensors = 0, bytes = 0;
};

Saved saved_in(const Trace& trace) {
  Saved saved;
  std::set<uint32_t> storages;
  for (const Event& event : trace.events) {
    if (event.kind != Event::Kind::save) continue;
    ++saved.tensors;
    if (storages.insert(event.id).second) saved.bytes += trace.storages[event.id].bytes.count;
  }
  return saved;
}

// What graphs cannot say: a value that follows from a tensor's numbers, lists that grow, and `with`.
const std::map<std::string, std::string> kNotRead = {
    {"bool_of_tensor", "line 4: there is no operator aten::Bool.Tensor"},
    {"appended", "line 6: there is no operator aten::append.t"},
    {"without_gradients", "line 2: there is no operator prim::CreateObject"}};

// Null: it is one of those.
std::shared_ptr<Graph> graph_of(const Json& function) {
  const auto refused = kNotRead.find(function.at("name").get<std::string>());
  try {
    auto graph = parse_graph(function.at("graph").get<std::string>(), standard_registry());
    EXPECT_TRUE(refused == kNotRead.end()) << "it is read now";
    return graph;
  } catch (const Error& error) {
    EXPECT_TRUE(refused != kNotRead.end() && refused->second == error.what()) << error.what();
    return nullptr;
  }
}

class RecordedFunction : public ::testing::TestWithParam<size_t> {};

TEST_P(RecordedFunction, IsExecutedAsRecorded) {
  const Json& function = recorded().at("functions").at(GetParam());
  SCOPED_TRACE(function.at("name"));
  const auto graph = graph_of(function);
  if (!graph) return;
  GraphExecutor executor(graph, test_options());
  for (const Json& call : function.at("calls")) {
    const auto session = make_session(test_options().context.platform);
    session->device = kHost;
    session->modes.grad = call.at("grad_mode").get<bool>();
    const auto outputs = executor.run(*session, arguments_of(*session, call.at("arguments")));
    if (call.at("call") == "first") {
      const Saved expected = {.tensors = function.at("saved_tensors").get<int64_t>(),
                              .bytes = function.at("saved_bytes").get<int64_t>()};
      const Saved found = saved_in(session->trace);
      EXPECT_EQ(found.tensors, expected.tensors) << explain(executor);
      EXPECT_EQ(found.bytes, expected.bytes) << explain(executor);
      std::vector<Names> graphs;
      add_differentiable(executor.last_plan()->graph->block(), graphs);
      EXPECT_EQ(sorted(graphs), sorted(recorded_graphs(function))) << explain(executor);
    }
    EXPECT_EQ(executor.plans().size(), call.at("plans").get<size_t>()) << call.at("call");
  }
}

// One backward after the other, each of a new run of one executor.
TEST_P(RecordedFunction, HasAsManyPlansOfGradientsAsRecorded) {
  const Json& function = recorded().at("functions").at(GetParam());
  SCOPED_TRACE(function.at("name"));
  const auto graph = graph_of(function);
  if (!graph) return;
  GraphExecutor executor(graph, test_options());
  for (const Json& backward : function.at("backwards")) {
    SCOPED_TRACE(backward.dump());
    const auto session = make_session(test_options().context.platform);
    session->device = kHost;
    const std::vector<metaprof::Value> arguments = arguments_of(*session, function.at("arguments"));
    const std::vector<Tensor> roots = roots_of(executor.run(*session, arguments), backward.at("from"));
    const auto run_backward = [&] {
      std::vector<Tensor> leaves, ones;
      for (const metaprof::Value& argument : arguments)
        if (argument.is_tensor() && argument.tensor().requires_grad()) leaves.push_back(argument.tensor());
      for (const Tensor& root : roots) ones.push_back(call<"ones_like">(*session, root));
      grad(*session, roots, leaves, ones,
           {.create_graph = backward.at("create_graph").get<bool>(), .allow_unused = true});
    };
    if (is_refused_by_autograd(backward) || fails_at_chunks(backward)) {
      EXPECT_THROW(run_backward(), Error);
      continue;
    }
    run_backward();
    std::vector<size_t> plans;
    for (const auto& gradient : gradient_executors(*executor.last_plan()))
      plans.push_back(gradient->plans().size());
    auto expected = backward.at("plans").get<std::vector<size_t>>();
    std::ranges::sort(plans);
    std::ranges::sort(expected);
    EXPECT_EQ(plans, expected) << explain(executor);
  }
}

TEST_P(RecordedFunction, ComputesWhatItsOperatorsCompute) {
  const Json& function = recorded().at("functions").at(GetParam());
  SCOPED_TRACE(function.at("name"));
  const auto graph = graph_of(function);
  if (!graph) return;
  std::vector<int64_t> integers;
  for (size_t i = 0; i < function.at("arguments").size(); ++i) {
    const Json& argument = function.at("arguments").at(i);
    if (argument.contains("int"))
      integers.push_back(argument.at("int").get<int64_t>());
    else
      graph->block().input(i)->type = type_of_argument(argument);
  }
  GraphExecutor compiled(graph, test_options()), plain(graph, test_options(false));
  const auto run = [&](GraphExecutor& executor) {
    GraphRun run;  // which seeds what dropout draws
    return run.run(executor, run.arguments(*graph, integers));
  };
  GraphResult found = run(compiled), expected = run(plain);
  EXPECT_EQ(found.error.empty(), expected.error.empty());
  if (!expected.error.empty()) found.error = expected.error;  // other nodes say the same
  EXPECT_EQ(difference(found, expected), "") << explain(compiled);
  EXPECT_FALSE(expected.outputs.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Functions, RecordedFunction, ::testing::Range(size_t{0}, recorded().at("functions").size()),
    [](const auto& info) {
      return recorded().at("functions").at(info.param).at("name").template get<std::string>();
    });

}  // namespace
}  // namespace metaprof::ir
