// What PyTorch's own graph executor did with scripted functions (tools/record_graph_executor.py), against ours: which
// operators lie in differentiable graphs, what is kept for the backward, how many plans there are after calls whose
// arguments change.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "graph/executor/differentiable_code.h"
#include "graph/ir/text.h"
#include "meta/ops/all.h"
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

// Sizes and comparisons of sizes are part of the framework's formulas; ours are in the context of a call.
bool is_helper(const std::string& name) {
  return name == "aten::size" || name == "aten::_size_if_not_equal" || name == "aten::numel" ||
         name == "prim::dtype";
}

void add_operators(const Graph& graph, Names& names) {
  for (const Node* node : graph.nodes()) {
    if (node->is(Kind::fusion_group)) add_operators(*node->graph("graph"), names);
    if (node->is(Kind::call)) names.push_back(without_overload(node->name));
    if (node->is(Kind::recorded)) names.push_back(without_overload(node->op->name));
  }
}

void add_differentiable(const Block& block, std::vector<Names>& graphs) {
  for (const Node* node : block.nodes()) {
    if (node->is(Kind::differentiable_graph)) add_operators(*node->graph("graph"), graphs.emplace_back());
    for (const auto& inner : node->blocks) add_differentiable(*inner, graphs);
  }
}

// The framework's formula for an operator makes it from another one, and cat's from a loop over lengths.
std::string ours(std::string name) {
  static const std::map<std::string, std::string> kMade = {{"aten::native_layer_norm", "aten::layer_norm"},
                                                           {"aten::native_dropout", "aten::dropout"},
                                                           {"prim::ConstantChunk", "aten::chunk"}};
  const auto found = kMade.find(name);
  return found == kMade.end() ? name : found->second;
}

std::vector<Names> recorded_graphs(const Json& function) {
  std::vector<Names> graphs;
  for (const Json& graph : function.at("graphs")) {
    Names& names = graphs.emplace_back();
    const bool has_cat = graph.size() > 0 && graph[0] == "aten::cat";
    for (const Json& operator_name : graph) {
      const std::string name = operator_name;
      if (is_helper(name) || (has_cat && name != "aten::cat" && name != "aten::exp")) continue;
      names.push_back(ours(name));
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

int64_t saved_bytes(const Trace& trace) {
  std::map<uint32_t, int64_t> storages;
  for (const Event& event : trace.events)
    if (event.kind == Event::Kind::save) storages[event.id] = trace.storages[event.id].bytes.count;
  int64_t bytes = 0;
  for (const auto& [id, size] : storages) bytes += size;
  return bytes;
}

// Where the framework keeps something else. Its formulas are written in a language in which a tensor's sizes or dtype come with
// the tensor, and it keeps what the gradient of an argument reads that needs none; ours keep what eager keeps.
struct Kept {
  int64_t ours;
  const char* reason;
};
const std::map<std::string, Kept> kKeptElse = {
    {"mlp_gelu", {252, "w1, 4 x 3 floats, which only the gradient of x reads, and x needs none"}},
    {"mlp_loss", {220, "w1 (48), the sizes of b1 (16), the dtype of the argument of log_softmax (80)"}},
    {"lstm_cell", {704, "sizes of bi and bh (80 each) and of the first product's sum (80 more)"}},
    {"attention", {616, "the dtype of the argument of softmax, 2 x 3 x 5 floats"}},
    {"attention_bmm", {616, "the dtype of the argument of softmax, 2 x 3 x 5 floats"}},
    {"dropout",
     {192,
      "its formula calls native_dropout, whose mask is bool (12); eager's on the host is of floats (48)"}},
    {"concatenation", {96, "the lengths of y, 4 x 3 floats, in the list that is concatenated"}},
};

class RecordedFunction : public ::testing::TestWithParam<size_t> {};

TEST_P(RecordedFunction, IsExecutedAsRecorded) {
  const Json& function = recorded().at("functions").at(GetParam());
  SCOPED_TRACE(function.at("name"));
  const auto graph = parse_graph(function.at("graph").get<std::string>(), standard_registry());
  GraphExecutor executor(graph, test_options());
  for (const Json& call : function.at("calls")) {
    const auto session = make_session(test_options().context.platform);
    session->device = kHost;
    session->modes.grad = call.at("grad_mode").get<bool>();
    const auto outputs = executor.run(*session, arguments_of(*session, call.at("arguments")));
    if (call.at("call") == "first") {
      const auto kept_else = kKeptElse.find(function.at("name"));
      const auto recorded_bytes = function.at("saved_bytes").get<int64_t>();
      EXPECT_EQ(saved_bytes(session->trace),
                kept_else == kKeptElse.end() ? recorded_bytes : kept_else->second.ours)
          << explain(executor);
      std::vector<Names> graphs;
      add_differentiable(executor.last_plan()->graph->block(), graphs);
      EXPECT_EQ(sorted(graphs), sorted(recorded_graphs(function))) << explain(executor);
    }
    EXPECT_EQ(executor.plans().size(), call.at("plans").get<size_t>()) << call.at("call");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Functions, RecordedFunction, ::testing::Range(size_t{0}, recorded().at("functions").size()),
    [](const auto& info) {
      return recorded().at("functions").at(info.param).at("name").template get<std::string>();
    });

}  // namespace
}  // namespace metaprof::ir
