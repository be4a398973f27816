#include <fmt/format.h>

#include <map>
#include <set>

#include "program/text/constant_text.h"
#include "step/compiled/ir/text.h"

namespace metaprof::ir {
namespace {

class Printer {
 public:
  explicit Printer(int indent = 0) : indent_(indent) {}

  std::string print(const Graph& graph) {
    text_ = "graph(" + definitions(graph.block().parameters->outputs) + ") {\n";
    indent_ += 2;
    print_body(graph.block());
    indent_ -= 2;
    return text_ + std::string(static_cast<size_t>(indent_), ' ') + "}";
  }

  std::string print_one(const Node& node) {
    print_node(node);
    return text_;
  }

 private:
  void print_body(const Block& block) {
    for (const Node* node = block.first(); !block.is_end(node); node = node->next) print_node(*node);
    line("-> (" + names(block.outputs()) + ")");
  }

  void print_node(const Node& node) {
    std::string text = definitions(node.outputs);
    if (!text.empty()) text += " = ";
    text += node.name;
    if (!node.attributes.empty()) text += "[" + attributes(node) + "]";
    text += "(" + names(node.inputs) + ")";
    if (!node.scope.empty()) text += " in " + word_text(node.scope);
    for (size_t i = 0; i < node.blocks.size(); ++i) {
      const Block& block = *node.blocks[i];
      text += block.inputs().empty() ? " {" : " { (" + definitions(block.inputs()) + ")";
      line(text);
      indent_ += 2;
      print_body(block);
      indent_ -= 2;
      text = "}";
    }
    line(text);
  }

  std::string attributes(const Node& node) {
    std::string text;
    for (const auto& [key, attribute] : node.attributes) {
      text += (text.empty() ? "" : ", ") + key + "=";
      if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute))
        text += Printer(indent_).print(**graph);
      else
        text += constant_text(std::get<Constant>(attribute));
    }
    return text;
  }

  std::string definitions(const std::vector<std::unique_ptr<Value>>& values) {
    std::string text;
    for (const auto& value : values)
      text += (text.empty() ? "" : ", ") + name(value.get()) + ": " + to_string(value->type);
    return text;
  }
  std::string names(const std::vector<Value*>& values) {
    std::string text;
    for (const Value* value : values) text += (text.empty() ? "" : ", ") + name(value);
    return text;
  }

  // A value's own name where it is the first of that name, else a number.
  const std::string& name(const Value* value) {
    std::string& shown = names_[value];
    if (!shown.empty()) return shown;
    if (!value->name.empty() && taken_.insert(value->name).second) return shown = "%" + value->name;
    do {
      shown = std::to_string(next_++);
    } while (!taken_.insert(shown).second);
    return shown = "%" + shown;
  }

  void line(const std::string& text) {
    text_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n";
  }

  int indent_;
  int next_ = 0;
  std::string text_;
  std::map<const Value*, std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace

std::string to_text(const Graph& graph) { return Printer().print(graph) + "\n"; }
std::string to_text(const Node& node) { return Printer().print_one(node); }

}  // namespace metaprof::ir
