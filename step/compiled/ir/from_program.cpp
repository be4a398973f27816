#include "step/compiled/ir/from_program.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "program/higher_order.h"
#include "step/compiled/ir/verify_graph.h"

namespace metaprof::ir {
namespace {

constexpr const char* kCheckpointed = "it checkpoints a part of the model, which is run again in backward";

class Conversion {
 public:
  Conversion(const Program& program, const Registry& registry, bool training)
      : program_(program),
        registry_(registry),
        training_(training),
        source_(&program.graph),
        values_(program.graph.values.size()) {}

  std::shared_ptr<Graph> convert() {
    if (!program_.graph.checkpoints.empty()) refuse(kCheckpointed);
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
    std::string name = source_->values[size_t(value)].name;
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
  }

  Value* constant(Constant value) {
    Node* node = graph_->create_constant(std::move(value));
    graph_->block().append(node);
    return node->output();
  }

  // A call may make fewer results than the program names: nothing is known of the others.
  Value* known(ValueId value) {
    return value == kNoValue || !values_[size_t(value)] ? constant(Constant()) : values_[size_t(value)];
  }

  Value* value_of(const metaprof::Operand& operand) {
    using From = metaprof::Operand::Kind;
    switch (operand.kind) {
      case From::constant: return constant(operand.constant);
      case From::value: return known(operand.value);
      case From::values: return list(operand, Type::Kind::tensors);
      case From::integers: return list(operand, Type::Kind::integers);
      case From::graph: refuse("a call has a graph inside that is no region of a mode");
      case From::unknown: refuse("a call has an argument of a kind that is not known, " + operand.text);
    }
    return nullptr;
  }

  // What was written down while exporting, but is decided by how the model is run (step/eager/arguments.cpp).
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
    if (makes_only_numbers(*source_, node)) {
      for (const Target& target : node.targets)
        for (const ValueId value : target.values)
          values_[size_t(value)] = constant(Constant(*source_->values[size_t(value)].number));
      return;
    }
    if (node.op == "step::keep") return;  // what a checkpoint would hold
    if (const auto region = region_call(node)) return add_region(node, *region);
    const Operator* op = registry_.find(node.op);
    if (!op) refuse("the operator " + node.op + " has no record, or encloses other calls");
    if (op->record.facts.artefact) return;
    std::vector<Value*> given(op->schema.arguments.size());
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const metaprof::Operand& operand = node.operands[i];
      const int at = op->schema.place_of(operand.name, i);
      if (at < 0 && !operand.name.empty()) refuse(node.op + " has no argument " + operand.name);
      if (at < 0)
        refuse(fmt::format("{} takes {} arguments, got {}", node.op, given.size(), node.operands.size()));
      given[size_t(at)] = argument(op->schema.arguments[size_t(at)], operand);
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i]) given[i] = constant(op->schema.arguments[i].default_value);
    // A view of what may have to be copied is a reshape, which takes the same arguments.
    if (node.copies_to_view) op = registry_.find("aten::reshape");
    Node* call = as_scripted(*op, given);
    if (node.modules >= 0 && !program_.module_stacks[size_t(node.modules)].empty())
      call->scope = program_.module_stacks[size_t(node.modules)].back().path;
    graph_->block().append(call);
    std::vector<Value*> results;
    for (const auto& output : call->outputs) results.push_back(output.get());
    take_results(node, results);
  }

  // An export has numbers as tensors' arguments, and a difference from a number as one call; the framework's language has
  // other calls for both.
  Node* as_scripted(const Operator& op, const std::vector<Value*>& given) {
    const Operator* chosen = &op;
    const bool of_number =
        given.size() > 1 && given[1]->node->is(Kind::constant) && given[1]->node->value("value").is_number();
    if (of_number && op.schema.arguments[1].is_tensor())
      if (const Operator* scalar = registry_.find(with_scalar(op.name))) chosen = scalar;
    const bool is_difference = chosen->name == "aten::rsub.Scalar" && of_number && is_one(*given[2]);
    if (!is_difference) return graph_->create_call(*chosen, given);
    Node* negative = graph_->create_call(*registry_.find("aten::neg"), {given[0]});
    graph_->block().append(negative);
    return graph_->create_call(*registry_.find("aten::add.Scalar"), {negative->output(), given[1], given[2]});
  }

  // "aten::mul.Scalar" for "aten::mul.Tensor".
  static std::string with_scalar(const std::string& name) {
    const size_t overload = name.rfind(".Tensor");
    return overload == std::string::npos ? name
                                         : name.substr(0, overload) + ".Scalar" + name.substr(overload + 7);
  }

  static bool is_one(const Value& value) {
    return value.node->is(Kind::constant) && value.node->value("value").is_number() &&
           value.node->value("value").real() == 1;
  }

  // The calls of a region stand among the others. Where gradients are off, they take their tensors detached: what is
  // computed from them has no history either.
  void add_region(const GraphNode& node, const RegionCall& region) {
    using Region = RegionCall::Kind;
    if (region.kind == Region::checkpoint) refuse(kCheckpointed);
    if (is_control_flow(region.kind))
      refuse(fmt::format("{} is in it, which torch.jit cannot script", node.op));
    if (region.kind == Region::autocast && region.enabled) refuse("a part of it runs under autocast");
    const bool turns_off = region.kind == Region::gradients && !region.enabled;
    if (region.kind == Region::gradients && region.enabled && without_gradients_)
      refuse("gradients are turned on where they are off");
    std::vector<Value*> given;
    for (size_t i = region.first_argument; i < node.operands.size(); ++i) {
      if (!node.operands[i].name.empty()) continue;  // an option of the operator
      if (node.operands[i].kind == metaprof::Operand::Kind::values)
        for (const ValueId value : node.operands[i].values) given.push_back(known(value));
      else
        given.push_back(value_of(node.operands[i]));
    }
    if (turns_off)
      for (Value*& value : given)
        if (value->type.is_tensor()) value = detached(value);
    const bool outside = std::exchange(without_gradients_, without_gradients_ || turns_off);
    take_results(node, add_body(*region.body, given));
    without_gradients_ = outside;
  }

  Value* detached(Value* value) {
    Node* call = graph_->create_call(*registry_.find("aten::detach"), {value});
    graph_->block().append(call);
    return call->output();
  }

  // A graph inside the program has values of its own.
  std::vector<Value*> add_body(const metaprof::Graph& body, const std::vector<Value*>& given) {
    const metaprof::Graph* source = std::exchange(source_, &body);
    std::vector<Value*> outside = std::exchange(values_, std::vector<Value*>(body.values.size()));
    if (given.size() != body.inputs.size()) refuse("a region is given other values than it takes");
    for (size_t i = 0; i < body.inputs.size(); ++i) define(body.inputs[i], given[i]);
    for (const GraphNode& node : body.nodes) add_node(node);
    std::vector<Value*> results;
    for (const metaprof::Operand& output : body.outputs) results.push_back(value_of(output));
    source_ = source;
    values_ = std::move(outside);
    return results;
  }

  void take_results(const GraphNode& node, const std::vector<Value*>& results) {
    for (size_t i = 0; i < node.targets.size() && i < results.size(); ++i) {
      const Target& target = node.targets[i];
      if (target.list) {
        Node* unpack = graph_->create(Kind::list_unpack, {results[i]});
        graph_->block().append(unpack);
        for (const ValueId value : target.values)
          define(value, unpack->add_output(Type::Kind::tensor, name_of(value)));
      } else if (!target.values.empty()) {
        if (results[i]->name.empty()) results[i]->name = name_of(target.values[0]);
        define(target.values[0], results[i]);
      }
    }
  }
  void define(ValueId value, Value* made) {
    if (value != kNoValue) values_[size_t(value)] = made;
  }

  const Program& program_;
  const Registry& registry_;
  const bool training_;
  const metaprof::Graph* source_;  // the program's graph, or one inside it
  bool without_gradients_ = false;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<Value*> values_;  // of `source_`
};

}  // namespace

std::shared_ptr<Graph> from_program(const Program& program, const Registry& registry, bool training) {
  return Conversion(program, registry, training).convert();
}

}  // namespace metaprof::ir
