#include "program/pt2/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "program/pt2/argument.h"
#include "program/pt2/tensor.h"
#include "program/symbols.h"

namespace metaprof {
namespace {

constexpr int kMaxDepth = 50;  // of sub-graphs in sub-graphs; real programs have a few
// Memory is not set aside for more than this: a text of a few bytes per value could ask for any amount.
constexpr size_t kExpected = 1 << 16;

class GraphReader {
 public:
  GraphReader(Pt2Context& context, int depth, int32_t modules)
      : context_(context), depth_(depth), modules_(modules), scope_(graph_) {}

  Graph read(Json json) {
    if (depth_ > kMaxDepth)
      json.reject(fmt::format("sub-graphs are nested too deep, more than {}", kMaxDepth));
    const Json facts = json.at("tensor_values"), nodes = json.at("nodes");
    scope_.reserve(std::min(facts.count(), kExpected));  // nearly all values are tensors
    graph_.nodes.reserve(std::min(nodes.count(), kExpected));
    json.at("inputs").for_each([&](Json input) { read_input(input); });
    nodes.for_each([&](Json node) { read_node(node); });
    json.at("outputs").for_each(
        [&](Json output) { graph_.outputs.push_back(read_operand(output, scope_, context_)); });
    read_tensors(facts);
    for (const char* key : {"sym_int_values", "sym_bool_values", "sym_float_values"})
      if (const Json values = json.find(key)) read_numbers(values);
    return std::move(graph_);
  }

 private:
  // Constant inputs (numbers, strings, None) define nothing.
  void read_input(Json input) {
    const auto [kind, value] = input.only_member();
    ValueId id = kNoValue;
    if (kind == "as_tensor") {
      id = scope_.define(value.at("name"), true);
    } else if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
      const auto [form, name] = value.only_member();
      if (form == "as_name") id = scope_.define(name, false);
    }
    graph_.inputs.push_back(id);
  }

  void read_node(Json json) {
    GraphNode node;
    node.op = context_.op_name(json.at("target"));
    node.modules = modules_;
    if (const Json metadata = json.find("metadata")) {
      if (const Json stack = metadata.find("nn_module_stack"))
        if (const int32_t modules = context_.module_stack(stack); modules >= 0) node.modules = modules;
      if (const Json trace = metadata.find("stack_trace")) node.source = context_.source_stack(trace);
    }
    const Json inputs = json.at("inputs");
    node.operands.reserve(std::min(inputs.count(), kExpected));
    inputs.for_each([&](Json input) { node.operands.push_back(read_input_of(node, json, input)); });
    json.at("outputs").for_each([&](Json output) { node.targets.push_back(read_target(output, scope_)); });
    graph_.nodes.push_back(std::move(node));
  }

  Operand read_input_of(const GraphNode& node, Json json, Json input) {
    const Json argument = input.at("arg");
    Operand operand = read_operand(argument, scope_, context_);
    if (const Json name = input.find("name")) operand.name = name.string();
    if (operand.kind != Operand::Kind::unknown) return operand;
    if (operand.text == "as_graph") {
      operand.kind = Operand::Kind::graph;
      operand.text.clear();
      const Json graph = argument.only_member().second.at("graph");
      operand.graph = std::make_shared<Graph>(GraphReader(context_, depth_ + 1, node.modules).read(graph));
      return operand;
    }
    context_.warn_once(
        node.op + ' ' + operand.text,
        fmt::format("{}: the argument '{}' of {} is of the unknown kind {}: its calls are treated as "
                    "those of an unknown operator",
                    json.path(), operand.name, node.op, operand.text));
    return operand;
  }

  void read_tensors(Json entries) {
    size_t unused = 0;
    std::string first_unused;
    entries.for_each_member([&](std::string_view name, Json entry) {
      const ValueId id = scope_.find(name);
      if (id == kNoValue) {
        if (unused++ == 0) first_unused = name;
        return;
      }
      ValueFacts& facts = graph_.values[static_cast<size_t>(id)];
      if (facts.tensor) entry.reject("the value occurs twice in tensor_values");
      const auto [tensor, is_new] = tensor_of(entry, context_);
      facts.tensor = tensor;
      if (is_new) check_numbers(entry, facts);
    });
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (scope_.is_tensor(static_cast<ValueId>(i)) && !graph_.values[i].tensor)
        entries.reject(fmt::format("no entry for the tensor '{}'", graph_.values[i].name));
    if (unused)
      context_.warn(fmt::format("{} holds {} unused entries, which nothing in the graph defines: {}{}",
                                entries.path(), unused, first_unused, unused > 1 ? ", …" : ""));
  }

  // Sizes that are symbols are checked when they are known.
  static void check_numbers(Json entry, const ValueFacts& facts) {
    const TensorFacts& tensor = *facts.tensor;
    if (!tensor.size_expressions.empty() || !tensor.stride_expressions.empty() ||
        tensor.offset_expression >= 0)
      return;
    try {
      check_sizes(facts);
    } catch (const Error& error) {
      entry.reject(error.what());
    }
  }

  void read_numbers(Json entries) {
    entries.for_each_member([&](std::string_view name, Json entry) {
      const ValueId id = scope_.find(name);
      if (id != kNoValue) read_symbolic_value(entry, graph_.values[static_cast<size_t>(id)], context_);
    });
  }

  Pt2Context& context_;
  const int depth_;
  const int32_t modules_;  // of the calling node, for nodes that have none of their own
  Graph graph_;
  Pt2Scope scope_;
};

}  // namespace

Graph read_graph(Json graph, Pt2Context& context) { return GraphReader(context, 0, -1).read(graph); }

}  // namespace metaprof
