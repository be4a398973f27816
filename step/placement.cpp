#include "step/placement.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/error.h"

namespace metaprof {
namespace {

std::string_view owner_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

// nn.Module._apply: children before the module's own parameters and buffers. Paths in registration order.
std::vector<std::string> children_first(const std::vector<std::string>& paths) {
  std::unordered_map<std::string_view, std::vector<std::string_view>> children;
  for (const std::string& path : paths)
    if (!path.empty()) children[owner_of(path)].push_back(path);
  std::vector<std::string> order;
  struct Level {
    std::string_view path;
    size_t next;
  };
  std::vector<Level> stack{{"", 0}};
  while (!stack.empty()) {
    Level& level = stack.back();
    const auto& mine = children[level.path];
    if (level.next < mine.size()) {
      stack.push_back({mine[level.next++], 0});
    } else {
      order.emplace_back(level.path);
      stack.pop_back();
    }
  }
  return order;
}

class Placement {
 public:
  Placement(Session& session, const Program& program, const StepOptions& options)
      : session_(session), program_(program), options_(options) {
    placed_.inputs.resize(program.inputs.size());
    for (const GraphNode& node : program.graph.nodes) {
      const Operator* op = session.registry.find(node.op);
      if (op && op->record.facts.on_placement) moving_.emplace_back(&node, op);
    }
  }

  PlacedTensors run() {
    std::unordered_map<std::string_view, std::vector<size_t>>
        owned;  // module path → its parameters, then its buffers
    for (auto kind : {ProgramInput::Kind::parameter, ProgramInput::Kind::buffer})
      for (size_t i = 0; i < program_.inputs.size(); ++i)
        if (program_.inputs[i].kind == kind) owned[owner_of(program_.inputs[i].name)].push_back(i);
    for (const std::string& path : children_first(program_.modules)) {
      for (size_t i : owned[path]) place_state(i);
      owned[path].clear();
      place_together(path);
    }
    // Names outside every module that the file lists.
    for (size_t i = 0; i < program_.inputs.size(); ++i)
      if (is_state(i)) place_state(i);
    for (size_t i = 0; i < program_.inputs.size(); ++i)
      if (!is_state(i)) place_input(i);
    list_parameters();
    return std::move(placed_);
  }

 private:
  bool is_state(size_t i) const {
    const auto kind = program_.inputs[i].kind;
    return kind == ProgramInput::Kind::parameter || kind == ProgramInput::Kind::buffer;
  }

  size_t first_name(size_t i) const {
    const int tied = program_.inputs[i].tied_to;
    return tied >= 0 ? size_t(tied) : i;
  }

  // Buffers that are no part of the state are computed by constructors in a dtype of their own (rotary
  // frequencies); a number (`torch.tensor(scale)`) has the default one.
  DType in_precision(const TensorFacts& facts, const ProgramInput& input) const {
    const DType dtype = facts.dtype;
    const bool computed =
        input.kind == ProgramInput::Kind::buffer && !input.persistent && !facts.sizes.empty();
    if (dtype != DType::f32 || computed || input.own_dtype) return dtype;
    return state_dtype(options_.precision);
  }

  Tensor allocate(size_t i, Category category, std::string_view name) {
    const std::optional<TensorFacts>& known = program_.graph.values[size_t(program_.inputs[i].value)].tensor;
    if (!known) fail("the program does not say what tensor '{}' is", name);
    const TensorFacts& facts = *known;
    Scoped<Category> born_as(session_.category, category);
    const bool last = options_.channels_last && facts.sizes.size() == 4;
    const Sizes strides = last ? strides_in(MemoryFormat::channels_last, facts.sizes) : facts.strides;
    Tensor tensor = session_.empty_strided(facts.sizes, strides, in_precision(facts, program_.inputs[i]),
                                           facts.device.value_or(session_.device));
    session_.trace.storages[tensor->storage->id].name = session_.trace.intern(name);
    return tensor;
  }

  void place_state(size_t i) {
    const size_t first = first_name(i);
    Value& value = placed_.inputs[first];
    if (value.is_none()) {
      const ProgramInput& input = program_.inputs[first];
      if (input.value == kNoValue) return;
      const bool parameter = input.kind == ProgramInput::Kind::parameter;
      session_.module = session_.trace.intern(owner_of(input.name));
      Tensor tensor = allocate(first, parameter ? Category::parameter : Category::buffer, input.name);
      tensor->is_parameter = true;
      tensor->requires_grad = parameter && program_.graph.values[size_t(input.value)].tensor->requires_grad;
      value = Value(std::move(tensor));
      session_.module = 0;
    }
    placed_.inputs[i] = value;
  }

  // What the record of a call of the module's weights says that moving does with them.
  void place_together(const std::string& path) {
    for (const auto& [node, op] : moving_) {
      const std::vector<Value> arguments = own_arguments(*op, *node, path);
      if (std::ranges::none_of(arguments, &Value::is_tensors)) continue;
      Scoped<Category> born_as(session_.category, Category::parameter);
      return op->record.facts.on_placement(session_, *op, arguments);
    }
  }

  // Constants, and lists of which all are of this module.
  std::vector<Value> own_arguments(const Operator& op, const GraphNode& node, const std::string& path) {
    std::vector<Value> arguments(op.schema.arguments.size());
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Operand& operand = node.operands[i];
      const int at = op.schema.place_of(operand.name, i);
      if (at < 0) continue;
      if (operand.kind == Operand::Kind::constant) arguments[size_t(at)] = operand.constant;
      if (operand.kind != Operand::Kind::values || operand.values.empty()) continue;
      Value::Tensors tensors;
      for (ValueId value : operand.values) {
        const size_t input = input_of(value);
        if (input < program_.inputs.size() && owner_of(program_.inputs[input].name) == path)
          tensors.push_back(placed_.inputs[input].tensor());
      }
      if (tensors.size() == operand.values.size()) arguments[size_t(at)] = Value(std::move(tensors));
    }
    return arguments;
  }

  size_t input_of(ValueId value) const {
    size_t i = 0;
    while (i < program_.inputs.size() && program_.inputs[i].value != value) ++i;
    return i < program_.inputs.size() ? first_name(i) : i;
  }

  void place_input(size_t i) {
    const ProgramInput& input = program_.inputs[i];
    if (input.kind == ProgramInput::Kind::constant) {
      placed_.inputs[i] = input.constant;
    } else if (input.value != kNoValue) {
      const ValueFacts& facts = program_.graph.values[size_t(input.value)];
      if (facts.tensor) placed_.inputs[i] = Value(allocate(i, Category::input, input.name));
      if (!facts.tensor && facts.number) placed_.inputs[i] = Value(*facts.number);
    }
  }

  void list_parameters() {
    std::vector<std::vector<std::string>> others(program_.inputs.size());  // names that are tied to an input
    for (const ProgramInput& input : program_.inputs)
      if (input.tied_to >= 0) others[size_t(input.tied_to)].push_back(input.name);
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (!is_state(i) || !placed_.inputs[i].is_tensor()) continue;
      const ProgramInput& input = program_.inputs[i];
      const Tensor& tensor = placed_.inputs[i].tensor();
      if (first_name(i) != i) continue;
      ParameterRecord record;
      record.names = {input.name};
      std::ranges::move(others[i], std::back_inserter(record.names));
      record.sizes = tensor.sizes();
      record.dtype = tensor.dtype();
      record.requires_grad = tensor->requires_grad;
      record.buffer = input.kind == ProgramInput::Kind::buffer;
      record.storage = tensor->storage->id;
      session_.trace.parameters.push_back(std::move(record));
      if (input.kind != ProgramInput::Kind::parameter) continue;
      placed_.parameters.push_back(tensor);
      if (tensor->requires_grad) placed_.trainable.push_back(tensor);
    }
  }

  Session& session_;
  const Program& program_;
  const StepOptions& options_;
  std::vector<std::pair<const GraphNode*, const Operator*>> moving_;  // calls that act when a module is moved
  PlacedTensors placed_;
};

}  // namespace

PlacedTensors place_tensors(Session& session, const Program& program, const StepOptions& options) {
  return Placement(session, program, options).run();
}

}  // namespace metaprof
