#include <fmt/format.h>

#include <unordered_map>

#include "step/compiled/ir/numbers.h"
#include "step/compiled/ir/text.h"
#include "step/compiled/ir/text_cursor.h"
#include "step/compiled/ir/verify_graph.h"

namespace metaprof::ir {
namespace {

constexpr int kMostNested = 50;  // blocks and graphs inside each other; real graphs have a few

// What stands left of a node's name.
struct Definition {
  std::string name;
  std::optional<Type> type;
};

class Parser {
 public:
  Parser(GraphText& text, const Registry& registry, int depth)
      : text_(text), registry_(registry), depth_(depth) {}

  std::shared_ptr<Graph> parse() {
    check_depth();
    const std::string_view word = text_.word();
    if (word != "graph") text_.wrong("a graph begins with 'graph('");
    graph_ = std::make_shared<Graph>();
    text_.take("(");
    parameters(graph_->block(), ")");
    text_.take("{");
    body(graph_->block());
    return graph_;
  }

 private:
  void check_depth() const {
    if (depth_ > kMostNested) text_.wrong("blocks and graphs are nested too deep, more than 50");
  }

  void parameters(Block& block, std::string_view end) {
    while (!text_.accept(end)) {
      if (!block.inputs().empty()) text_.take(",");
      Definition made = definition();
      define(made.name, block.parameters->add_output(made.type.value_or(Type::Kind::any), made.name));
    }
  }

  Definition definition() {
    Definition made{text_.value_name(), std::nullopt};
    if (text_.accept(":")) made.type = text_.type();
    return made;
  }

  void define(const std::string& name, Value* value) {
    if (!values_.try_emplace(name, value).second) text_.wrong("%" + name + " is made twice");
    scopes_.back().push_back(name);
    // Numbers are the printer's names for values without one.
    if (name.find_first_not_of("0123456789") == name.npos) value->name.clear();
  }

  Value* known(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) text_.wrong("%" + name + " is not made yet");
    return found->second;
  }

  // Nodes up to "-> (outputs) }". Values that are made here are not known outside.
  void body(Block& block) {
    while (!text_.accept("->")) {
      if (text_.at_end()) text_.wrong("the text ends within a block");
      node(block);
    }
    text_.take("(");
    while (!text_.accept(")")) {
      if (!block.outputs().empty()) text_.take(",");
      block.results->add_input(argument(block));
    }
    text_.take("}");
  }

  void node(Block& block) {
    std::vector<Definition> made;
    while (text_.next_is("%")) {
      if (!made.empty()) text_.accept(",");
      made.push_back(definition());
      if (!text_.accept(",")) break;
    }
    if (!made.empty()) text_.take("=");
    const std::string name(text_.word());
    Node* node = create(name);
    if (text_.accept("[")) attributes(*node);
    if (node->has("of")) node->op = operator_of(*node);
    arguments(*node, block);
    if (text_.peek_word() == "in") {
      text_.word();
      node->scope = text_.next_is("\"") ? text_.constant().string() : std::string(text_.word());
    }
    node->move_before(block.results.get());
    while (text_.accept("{")) inner_block(*node);
    outputs(*node, made);
  }

  Node* create(const std::string& name) {
    if (name.empty()) text_.wrong("the name of an operator is expected");
    if (const auto kind = kind_of_name(name)) return graph_->create(*kind);
    Node* node = graph_->create(Kind::call);
    node->name = name;
    node->op = registry_.find(name);
    if (node->op) return node;
    if (!number_op(name)) text_.wrong(fmt::format("there is no operator {}", name));
    node->kind = Kind::number;
    return node;
  }

  const Operator* operator_of(const Node& node) {
    const Constant& name = node.value("of");
    const Operator* op = name.kind() == Constant::Kind::string ? registry_.find(name.string()) : nullptr;
    if (!op) text_.wrong(fmt::format("{}: 'of' names no operator", node.name));
    return op;
  }

  void inner_block(Node& node) {
    ++depth_;
    check_depth();
    Block* block = node.add_block();
    scopes_.emplace_back();
    if (text_.accept("(")) parameters(*block, ")");
    body(*block);
    for (const std::string& name : scopes_.back()) values_.erase(name);
    scopes_.pop_back();
    --depth_;
  }

  void attributes(Node& node) {
    while (!text_.accept("]")) {
      if (!node.attributes.empty()) text_.take(",");
      const std::string key(text_.word());
      text_.take("=");
      Attribute attribute =
          text_.peek_word() == "graph" ? Attribute(inner_graph()) : Attribute(text_.constant());
      if (!node.attributes.emplace(key, std::move(attribute)).second)
        text_.wrong("the attribute '" + key + "' is given twice");
    }
  }

  std::shared_ptr<Graph> inner_graph() { return Parser(text_, registry_, depth_ + 1).parse(); }

  // --- Arguments

  void arguments(Node& node, Block& block) {
    text_.take("(");
    std::vector<Value*> given;
    const std::vector<Argument>* schema = node.is(Kind::call) ? &node.op->schema.arguments : nullptr;
    if (schema) given.resize(schema->size());
    for (size_t i = 0; !text_.accept(")"); ++i) {
      if (i) text_.take(",");
      size_t at = i;
      if (schema)
        at = place_of(node, *schema, at);
      else
        given.resize(at + 1);
      given[at] = argument(block);
    }
    for (size_t i = 0; i < given.size(); ++i) node.add_input(given[i] ? given[i] : missing(node, i, block));
  }

  size_t place_of(const Node& node, const std::vector<Argument>& schema, size_t at) {
    const std::string_view word = text_.peek_word();
    for (size_t i = 0; i < schema.size(); ++i) {
      if (schema[i].name != word || !text_.next_is(schema[i].name + "=")) continue;  // device(cpu) is no name
      text_.word();
      text_.take("=");
      return i;
    }
    if (at >= schema.size()) text_.wrong(fmt::format("{} takes {} arguments", node.name, schema.size()));
    return at;
  }

  Value* missing(const Node& node, size_t i, Block& block) {
    const Argument& argument = node.op->schema.arguments[i];
    if (!argument.has_default && !argument.optional)
      text_.wrong(fmt::format("{}: the argument '{}' is missing", node.name, argument.name));
    return constant(argument.default_value, block);
  }

  // A value, a constant, or a list of which one is a value.
  Value* argument(Block& block) {
    if (text_.next_is("%")) return known(text_.value_name());
    if (text_.next_is("[%") || text_.next_is("[ %")) return list(block);
    return constant(text_.constant(), block);
  }

  Value* list(Block& block) {
    text_.take("[");
    Node* node = graph_->create(Kind::list_construct);
    while (!text_.accept("]")) {
      if (!node->inputs.empty()) text_.take(",");
      node->add_input(argument(block));
    }
    block.append(node);
    return node->add_output(list_type(*node));
  }

  static Type list_type(const Node& node) {
    const Type::Kind first = node.inputs.empty() ? Type::Kind::tensor : node.input()->type.kind;
    return first == Type::Kind::integer ? Type::Kind::integers : Type::Kind::tensors;
  }

  Value* constant(Constant value, Block& block) {
    Node* node = graph_->create_constant(std::move(value));
    block.append(node);
    return node->output();
  }

  // --- Outputs

  void outputs(Node& node, const std::vector<Definition>& made) {
    if (node.is(Kind::call))
      add_schema_outputs(node);
    else if (const NumberOp* number = node.is(Kind::number) ? number_op(node.name) : nullptr)
      node.add_output(number->type());
    else if (node.is(Kind::constant) && node.has("value"))
      node.add_output(type_of(node.value("value")));
    else
      for (const Definition& one : made) node.add_output(default_type(node, one));
    if (made.size() != node.outputs.size())
      text_.wrong(fmt::format("{} makes {} values, of which {} have names", node.name, node.outputs.size(),
                              made.size()));
    for (size_t i = 0; i < made.size(); ++i) {
      Value* value = node.output(i);
      value->name = made[i].name;
      if (made[i].type) value->type = *made[i].type;
      define(made[i].name, value);
    }
  }

  static Type default_type(const Node& node, const Definition&) {
    if (node.is(Kind::list_construct)) return list_type(node);
    return Type::Kind::tensor;
  }

  GraphText& text_;
  const Registry& registry_;
  int depth_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Value*> values_;
  std::vector<std::vector<std::string>> scopes_{1};
};

}  // namespace

std::shared_ptr<Graph> parse_graph(std::string_view text, const Registry& registry) {
  GraphText cursor(text);
  auto graph = Parser(cursor, registry, 0).parse();
  if (!cursor.at_end()) cursor.wrong("something stands behind the graph");
  verify(*graph);
  return graph;
}

}  // namespace metaprof::ir
