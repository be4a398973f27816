#include "tests/fuzz/random_calls.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/ops/all.h"
#include "program/def_use.h"
#include "tests/fuzz/random_values.h"
#include "validation/cases/recorded_argument.h"
#include "validation/recordings/recorded_value.h"

namespace metaprof {
namespace {

class RandomCalls {
 public:
  RandomCalls(uint64_t seed, uint64_t number) : random_(seed, number) {}

  Program program() {
    for (size_t i = 1 + random_.below(4); i > 0; --i) add_input(random_tensor(random_));
    for (size_t i = random_.once_in(3) ? 1 + random_.below(3) : 1; i > 0; --i) add_call();
    add_loss();
    if (random_.once_in(2)) drop_after_last_use(program_.graph);
    if (random_.once_in(12)) program_.graph.checkpoints.push_back({0, calls_, random_.once_in(3)});
    program_.training = !random_.once_in(15);
    program_.name = "calls";
    program_.origin = "calls.mp";
    return std::move(program_);
  }

 private:
  ValueId add_value(std::string name, std::optional<TensorFacts> tensor) {
    ValueFacts& facts = program_.graph.values.emplace_back();
    facts.name = std::move(name);
    facts.tensor = std::move(tensor);
    return static_cast<ValueId>(program_.graph.values.size() - 1);
  }

  ValueId add_input(TensorFacts facts) {
    using Kind = ProgramInput::Kind;
    const Kind kind = random_.one_of({Kind::user, Kind::user, Kind::parameter, Kind::buffer});
    facts.requires_grad = is_differentiable(facts.dtype) && (kind == Kind::parameter || random_.once_in(2));
    const std::string name = fmt::format("x{}", program_.inputs.size());
    const ValueId value = add_value(name, std::move(facts));
    ProgramInput& input = program_.inputs.emplace_back();
    input.kind = kind;
    input.value = value;
    input.name = name;
    program_.graph.inputs.push_back(value);
    known_.push_back(value);
    return value;
  }

  // Operands name values by their place among the known ones until here.
  Operand known(Operand operand) const {
    if (operand.value != kNoValue) operand.value = known_[static_cast<size_t>(operand.value)];
    for (ValueId& value : operand.values)
      if (value != kNoValue) value = known_[static_cast<size_t>(value)];
    return operand;
  }

  void add_call() {
    const auto& operators = standard_registry().operators();
    const Operator& op = *operators[random_.below(operators.size())];
    GraphNode node;
    node.op = op.name;
    if (!op.record.examples.empty() && random_.once_in(2))
      take_example(op, node);
    else
      take_schema(op, node);
    if (random_.once_in(25) && !node.operands.empty()) node.operands.pop_back();
    if (random_.once_in(40)) node.operands.push_back(known(random_operand(random_, known_.size())));
    // Words in front of positions are no text of a program.
    bool named = false;
    for (size_t i = 0; i < node.operands.size() && i < op.schema.arguments.size(); ++i) {
      named = named || op.schema.arguments[i].keyword_only || random_.once_in(10);
      if (named) node.operands[i].name = op.schema.arguments[i].name;
    }
    add_results(op, node);
    program_.graph.nodes.push_back(std::move(node));
    ++calls_;
  }

  void take_schema(const Operator& op, GraphNode& node) {
    for (const Argument& argument : op.schema.arguments) {
      if (argument.has_default && random_.once_in(4)) break;
      node.operands.push_back(known(operand_for(random_, argument, known_.size())));
    }
  }

  // A call that is right, with up to two arguments or tensors changed.
  void take_example(const Operator& op, GraphNode& node) {
    const std::string_view example = random_.one_of(op.record.examples);
    const std::vector<RecordedValue> values = parse_values(example, Storages::optional);
    for (size_t i = 0; i < values.size() && i < op.schema.arguments.size(); ++i)
      node.operands.push_back(example_operand(op.schema.arguments[i], values[i]));
    for (size_t changes = random_.below(3); changes > 0 && !node.operands.empty(); --changes) {
      const size_t i = random_.below(node.operands.size());
      Operand& operand = node.operands[i];
      if (operand.kind == Operand::Kind::value && random_.once_in(2))
        program_.graph.values[static_cast<size_t>(operand.value)].tensor = random_tensor(random_);
      else
        operand = known(operand_for(random_, op.schema.arguments[i], known_.size()));
    }
  }

  Operand example_operand(const Argument& argument, const RecordedValue& value) {
    Operand operand;
    if (value.kind == RecordedValue::Kind::tensor) {
      operand.kind = Operand::Kind::value;
      operand.value = input_like(value.tensor[0]);
    } else if (value.kind == RecordedValue::Kind::list && argument.is_tensors()) {
      operand.kind = Operand::Kind::values;
      for (const RecordedValue& element : value.list)
        operand.values.push_back(element.tensor.empty() ? kNoValue : input_like(element.tensor[0]));
    } else {
      operand.constant = recorded_argument(argument, value, kModelDevice, {});
    }
    return operand;
  }

  // Programs have no sparse inputs: those of examples become dense ones.
  ValueId input_like(const RecordedTensor& tensor) {
    TensorFacts facts;
    facts.dtype = tensor.dtype;
    facts.sizes = tensor.sizes;
    facts.strides = tensor.strides;
    if (facts.strides.size() != facts.sizes.size()) facts.strides = contiguous_strides(facts.sizes);
    facts.offset = tensor.offset;
    if (tensor.on_host) facts.device = kHost;
    return add_input(std::move(facts));
  }

  void add_results(const Operator& op, GraphNode& node) {
    size_t count = op.schema.returns.size();
    if (count > 0 && random_.once_in(40)) --count;
    for (size_t i = 0; i < count; ++i) {
      const Argument& result = op.schema.returns[i];
      Target target{.list = result.list, .values = {}};
      for (size_t elements = result.list ? random_.below(4) : 1; elements > 0; --elements) {
        const ValueId value = add_value(fmt::format("r{}", program_.graph.values.size()), std::nullopt);
        target.values.push_back(value);
        known_.push_back(value);
        if (result.type == Type::tensor) made_.push_back(value);
      }
      node.targets.push_back(std::move(target));
    }
  }

  ValueId add_node(const std::string& op, std::initializer_list<ValueId> arguments) {
    GraphNode node;
    node.op = op;
    for (const ValueId argument : arguments) {
      Operand& operand = node.operands.emplace_back();
      operand.kind = Operand::Kind::value;
      operand.value = argument;
    }
    const ValueId made = add_value(fmt::format("r{}", program_.graph.values.size()), std::nullopt);
    node.targets = {{false, {made}}};
    program_.graph.nodes.push_back(std::move(node));
    return made;
  }

  // The sum of a result, or of whatever there is, and of a parameter: so there is a backward, whatever the calls make.
  void add_loss() {
    const ValueId of = random_.one_of(made_.empty() ? known_ : made_);
    TensorFacts facts;
    facts.dtype = DType::f32;
    facts.sizes = {2};
    facts.strides = {1};
    facts.requires_grad = true;
    const ValueId weight = add_value("w", std::move(facts));
    ProgramInput& input = program_.inputs.emplace_back();
    input.kind = ProgramInput::Kind::parameter;
    input.value = weight;
    input.name = "w";
    program_.graph.inputs.push_back(weight);
    const ValueId loss =
        add_node("aten::add.Tensor", {add_node("aten::sum", {of}), add_node("aten::sum", {weight})});
    Operand operand;
    operand.kind = Operand::Kind::value;
    operand.value = loss;
    program_.graph.outputs.push_back(operand);
    program_.outputs.push_back({ProgramOutput::Kind::loss, operand, ""});
  }

  Random random_;
  Program program_;
  std::vector<ValueId> known_, made_;  // all that calls may take; results of calls
  size_t calls_ = 0;
};

}  // namespace

Program random_calls(uint64_t seed, uint64_t number) { return RandomCalls(seed, number).program(); }

}  // namespace metaprof
