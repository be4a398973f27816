#include "step/compiled/ir/dot.h"

#include <fmt/format.h>

#include <iterator>
#include <map>

namespace metaprof::ir {
namespace {

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

class DotWriter {
 public:
  std::string write(const Graph& graph) {
    line("digraph graph_ir {{");
    line("  node [shape=box, fontname=\"monospace\"];");
    add(graph.block());
    line("}}");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  int number(const Node& node) {
    return numbers_.try_emplace(&node, static_cast<int>(numbers_.size())).first->second;
  }

  void add(const Block& block) {
    add_node(*block.parameters, "inputs");
    for (const Node* node = block.first(); !block.is_end(node); node = node->next)
      if (!node->is(Kind::constant)) add_node(*node, node->name);
    add_node(*block.results, "outputs");
  }

  void add_node(const Node& node, std::string_view label) {
    line("  n{} [label={}];", number(node), in_quotes(label));
    for (const Value* input : node.inputs)
      if (!input->node->is(Kind::constant))
        line("  n{} -> n{} [label={}];", number(*input->node), number(node), in_quotes(input->name));
    for (const auto& block : node.blocks) add_cluster(*block, node);
    if (node.has("graph")) add_cluster(node.graph("graph")->block(), node);
  }

  void add_cluster(const Block& block, const Node& node) {
    line("  subgraph cluster_{} {{ label={};", clusters_++, in_quotes(node.name));
    add(block);
    line("  }}");
  }

  std::string text_;
  std::map<const Node*, int> numbers_;
  int clusters_ = 0;
};

}  // namespace

std::string to_dot(const Graph& graph) { return DotWriter().write(graph); }

}  // namespace metaprof::ir
