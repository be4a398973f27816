#include "graph/ir/from_program.h"

#include "core/error.h"
#include "graph/ir/verify_graph.h"

namespace metaprof::ir {
namespace {

class Conversion {
 public:
  Conversion(const Program& program, const Registry& registry, bool training)
      : program_(program), registry_(registry), training_(training), values_(program.graph.values.size()) {}

  std::shared_ptr<Graph> convert() {
    if (!program_.graph.checkpoints.empty())
      refuse("it checkpoints a part of the model, which is run again in backward");
    if (program_.captured) refuse("it was captured from a run and holds whole steps");
    if (!program_.resizing.empty())
      refuse("an input has another size than in the export, whose numbers do not follow it");
    for (size_t i = 0; i < program_.graph.inputs.size(); ++i) add_input(i);
    for (const GraphNode& node : program_.graph.nodes) add_node(node);
    for (const metaprof::Operand& output : program_.graph.outputs) graph_->add_output(value_of(output));
    verify(*graph_);
    return graph_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail("{}: this model is not compiled as a graph: {}; run it eagerly", program_.origin, why);
  }

  void add_input(size_t i) {
    const ValueId value = program_.graph.inputs[i];
    const bool is_constant = program_.inputs[i].kind == ProgramInput::Kind::constant;
    const bool is_tensor = !is_constant && value != kNoValue && program_.graph.values[size_t(value)].tensor;
    Value* input = graph_->add_input(is_tensor ? Type::Kind::tensor : Type::Kind::any, name_of(value));
    if (value != kNoValue) values_[size_t(value)] = input;
  }

  std::string name_of(ValueId value) const {
    if (value == kNoValue) return {};
    std::string name = program_.graph.values[size_t(value)].name;
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
  }

  Value* constant(Constant value) {
    Node* node = graph_->create_constant(std::move(value));
    graph_->block().append(node);
    return node->output();
  }

  Value* known(ValueId value) { return value == kNoValue ? constant(Constant()) : values_[size_t(value)]; }

  Value* value_of(const metaprof::Operand& operand) {
    using From = metaprof::Operand::Kind;
    switch (operand.kind) {
      case From::constant: return constant(operand.constant);
      case From::value: return known(operand.value);
      case From::values: return list(operand, Type::Kind::tensors);
      case From::integers: return list(operand, Type::Kind::integers);
      case From::graph: refuse("a call has a graph inside");
      case From::unknown: refuse("a call has an argument of a kind that is not known, " + operand.text);
    }
    return nullptr;
  }

  // What was written down while exporting, but is decided by how the model is run (meta/run/arguments.cpp).
  Value* argument(const Argument& argument, const metaprof::Operand& operand) {
    if (argument.role == Role::cudnn_flag) return constant(Constant(true));
    if (!training_ && argument.role == Role::training_flag) return constant(Constant(false));
    if (!training_ && argument.role == Role::dropout_probability) return constant(Constant(0.0));
    return value_of(operand);
  }

  Value* list(const metaprof::Operand& operand, Type::Kind kind) {
    Node* node = graph_->create(Kind::list_construct);
    const size_t count = kind == Type::Kind::tensors ? operand.values.size() : operand.numbers.size();
    for (size_t i = 0; i < count; ++i) {
      const ValueId value = i < operand.values.size() ? operand.values[i] : kNoValue;
      const bool number = kind == Type::Kind::integers && value == kNoValue;
      node->add_input(number ? constant(Constant(operand.numbers[i])) : known(value));
    }
    graph_->block().append(node);
    return node->add_output(kind);
  }

  void add_node(const GraphNode& node) {
    if (makes_only_numbers(program_.graph, node)) {
      for (const Target& target : node.targets)
        for (const ValueId value : target.values)
          values_[size_t(value)] = constant(Constant(*program_.graph.values[size_t(value)].number));
      return;
    }
    const Operator* op = registry_.find(node.op);
    if (!op) refuse("the operator " + node.op + " has no record, or encloses other calls");
    if (op->record.facts.artefact) return;
    std::vector<Value*> given(op->schema.arguments.size());
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const metaprof::Operand& operand = node.operands[i];
      const int at = operand.name.empty() ? static_cast<int>(i) : op->schema.find(name_hash(operand.name));
      if (at < 0 || static_cast<size_t>(at) >= given.size())
        refuse(node.op + " has no argument " + operand.name);
      given[size_t(at)] = argument(op->schema.arguments[size_t(at)], operand);
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i]) given[i] = constant(op->schema.arguments[i].default_value);
    Node* call = graph_->create_call(*op, given);
    if (node.modules >= 0 && !program_.module_stacks[size_t(node.modules)].empty())
      call->scope = program_.module_stacks[size_t(node.modules)].back().path;
    graph_->block().append(call);
    take_results(node, *call);
  }

  void take_results(const GraphNode& node, Node& call) {
    for (size_t i = 0; i < node.targets.size() && i < call.outputs.size(); ++i) {
      const Target& target = node.targets[i];
      if (target.list) {
        Node* unpack = graph_->create(Kind::list_unpack, {call.output(i)});
        graph_->block().append(unpack);
        for (const ValueId value : target.values)
          define(value, unpack->add_output(Type::Kind::tensor, name_of(value)));
      } else if (!target.values.empty()) {
        call.output(i)->name = name_of(target.values[0]);
        define(target.values[0], call.output(i));
      }
    }
  }
  void define(ValueId value, Value* made) {
    if (value != kNoValue) values_[size_t(value)] = made;
  }

  const Program& program_;
  const Registry& registry_;
  const bool training_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<Value*> values_;
};

}  // namespace

std::shared_ptr<Graph> from_program(const Program& program, const Registry& registry, bool training) {
  return Conversion(program, registry, training).convert();
}

}  // namespace metaprof::ir
