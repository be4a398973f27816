#include "program/nn/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "meta/session/call.h"

namespace metaprof::nn {

namespace {

Recording& recording_of(std::string_view op, std::span<const Argument> given) {
  for (const Argument& argument : given) {
    if (argument.tensor.defined()) return *argument.tensor->recording;
    if (!argument.tensors) continue;
    for (const Tensor& tensor : *argument.tensors)
      if (tensor.defined()) return *tensor->recording;
  }
  fail("{}: no argument is a tensor", op);
}

}  // namespace

Recorded::Recorded(Ref<Recording> recording, ValueId value, bool is_input, metaprof::Tensor geometry)
    : recording(std::move(recording)), value(value), is_input(is_input), geometry(std::move(geometry)) {}

Recorded::~Recorded() {
  if (!is_input) recording->dropped(value);
}

Tensor call(std::string_view op, std::span<Argument> given) { return call_all(op, given).at(0); }

std::vector<Tensor> call_all(std::string_view op, std::span<Argument> given) {
  return recording_of(op, given).call(op, given);
}

Recording::Recording(std::string name)
    // Geometry is the same on every device but for attention, whose results have the strides of the
    // implementation that is chosen; the interpreter chooses again.
    : session_(make_session(platform_named("h200"))) {
  session_->modes.below_autograd = true;
  program_.name = program_.origin = std::move(name);
}

Recording::~Recording() = default;

int32_t Recording::add_module(std::string path, std::string type) {
  if (!program_.module_types.emplace(path, std::move(type)).second)
    fail("{}: two modules have the path '{}'", program_.name, path);
  program_.modules.push_back(std::move(path));
  calls_of_module_.push_back(0);
  return static_cast<int32_t>(program_.modules.size()) - 1;
}

std::string Recording::name_in(int32_t module, std::string_view name) const {
  const std::string& owner = path(module);
  return owner.empty() ? std::string(name) : fmt::format("{}.{}", owner, name);
}

Tensor Recording::handle(metaprof::Tensor geometry, bool is_input) {
  const auto id = static_cast<ValueId>(program_.graph.values.size());
  ValueFacts& facts = program_.graph.values.emplace_back();
  facts.tensor.emplace();
  facts.tensor->dtype = geometry.dtype();
  facts.tensor->sizes = geometry.sizes();
  facts.tensor->strides = geometry.strides();
  facts.tensor->offset = geometry->offset;
  if (!geometry.device().is_cuda()) facts.tensor->device = geometry.device();
  return Tensor(Ref<Recorded>(new Recorded(Ref<Recording>(this), id, is_input, std::move(geometry))));
}

Tensor Recording::add_input(ProgramInput input, int32_t module, const Sizes& sizes, DType dtype,
                            bool trains) {
  Tensor tensor = handle(session_->empty(sizes, dtype, session_->device), true);
  program_.graph.values.back().tensor->requires_grad = trains;
  input.value = tensor->value;
  program_.inputs.push_back(std::move(input));
  module_of_input_.push_back(module);
  return tensor;
}

Tensor Recording::parameter(int32_t module, std::string_view name, Sizes sizes, DType dtype, bool trains) {
  return add_input({.kind = ProgramInput::Kind::parameter, .name = name_in(module, name), .constant = {}},
                   module, sizes, dtype, trains);
}

Tensor Recording::buffer(int32_t module, std::string_view name, Sizes sizes, DType dtype, bool persistent) {
  return add_input({.kind = ProgramInput::Kind::buffer,
                    .name = name_in(module, name),
                    .persistent = persistent,
                    .constant = {}},
                   module, sizes, dtype, false);
}

void Recording::freeze(int32_t module) {
  for (size_t i = 0; i < program_.inputs.size(); ++i)
    if (module_of_input_[i] == module)
      program_.graph.values[static_cast<size_t>(program_.inputs[i].value)].tensor->requires_grad = false;
}

void Recording::tie(int32_t module, std::string_view name, const Tensor& parameter) {
  const auto first = std::ranges::find(program_.inputs, parameter->value, &ProgramInput::value);
  const int tied_to = static_cast<int>(first - program_.inputs.begin());
  const bool trains = program_.graph.values[static_cast<size_t>(parameter->value)].tensor->requires_grad;
  add_input({.kind = ProgramInput::Kind::parameter,
             .name = name_in(module, name),
             .tied_to = tied_to,
             .constant = {}},
            module, parameter.sizes(), parameter.dtype().dtype, trains);
}

Tensor Recording::input(std::string name, DType dtype, Sizes sizes) {
  const auto behind_all = std::numeric_limits<int32_t>::max();
  return add_input({.kind = ProgramInput::Kind::user, .name = std::move(name), .constant = {}}, behind_all,
                   sizes, dtype, false);
}

void Recording::enter(int32_t module) {
  const auto index = static_cast<size_t>(module);
  ModuleCall entered{.path = path(module), .type = program_.module_types[path(module)], .key = path(module)};
  if (const int32_t before = calls_of_module_[index]++) entered.key += fmt::format("@{}", before);
  std::vector<ModuleCall> stack;
  if (!entered_.empty()) stack = program_.module_stacks[static_cast<size_t>(entered_.back())];
  stack.push_back(std::move(entered));
  entered_.push_back(static_cast<int32_t>(program_.module_stacks.size()));
  program_.module_stacks.push_back(std::move(stack));
}

void Recording::leave() { entered_.pop_back(); }

Operand Recording::operand(const Argument& argument, const std::string& name) const {
  Operand operand;
  operand.name = name;
  if (argument.tensor.defined()) {
    operand.kind = Operand::Kind::value;
    operand.value = argument.tensor->value;
  } else if (argument.tensors) {
    operand.kind = Operand::Kind::values;
    for (const Tensor& tensor : *argument.tensors)
      operand.values.push_back(tensor.defined() ? tensor->value : kNoValue);
  } else {
    operand.constant = argument.constant;
  }
  return operand;
}

Value Recording::value(const Argument& argument) const {
  if (argument.tensor.defined()) return Value(argument.tensor->geometry);
  if (argument.tensors) {
    Value::Tensors tensors;
    for (const Tensor& tensor : *argument.tensors)
      tensors.push_back(tensor.defined() ? tensor->geometry : metaprof::Tensor());
    return Value(std::move(tensors));
  }
  if (argument.constant.kind() == Value::Kind::device && argument.constant.device() == kModelDevice)
    return Value(session_->device);
  return argument.constant;
}

void Recording::write_node(const Operator& op, std::span<const Argument> given, Target target) {
  GraphNode& node = program_.graph.nodes.emplace_back();
  node.op = op.name;
  node.modules = entered_.empty() ? -1 : entered_.back();
  node.without_autocast = without_autocast;
  node.operands.reserve(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const metaprof::Argument& argument = op.schema.arguments[i];
    if (given[i].dtype_of != kNoValue)
      node.dtype_of = given[i].dtype_of;
    else if (argument.type == Type::dtype && !given[i].constant.is_none())
      node.dtype_named = true;
    node.operands.push_back(operand(given[i], argument.name));
  }
  node.targets.push_back(std::move(target));
}

std::vector<Tensor> Recording::call(std::string_view name, std::span<Argument> given) {
  const Operator* op = session_->registry.find(fmt::format("aten::{}", name));
  if (!op) fail("{}: there is no operator '{}'", program_.name, name);
  if (given.size() > op->schema.arguments.size())
    fail("{}: {} takes {} arguments, got {}", program_.name, name, op->schema.arguments.size(), given.size());
  std::vector<Value> values;
  values.reserve(given.size());
  for (const Argument& argument : given) values.push_back(value(argument));
  Results results = invoke(*session_, *op, values);
  write_node(*op, given, {});
  GraphNode& node = program_.graph.nodes.back();
  node.targets.clear();
  std::vector<Tensor> made;
  for (Value& result : results.list()) {
    Target& target = node.targets.emplace_back();
    target.list = result.is_tensors();
    if (target.list) {
      for (const metaprof::Tensor& tensor : result.tensors()) made.push_back(handle(tensor, false));
    } else if (result.is_tensor()) {
      made.push_back(handle(result.take_tensor(), false));
    } else {
      target.values.push_back(kNoValue);
      made.emplace_back();
      continue;
    }
    const size_t count = target.list ? result.tensors().size() : 1;
    for (size_t i = made.size() - count; i < made.size(); ++i) target.values.push_back(made[i]->value);
  }
  return made;
}

void Recording::dropped(ValueId value) {
  if (!finished_) program_.graph.nodes.back().drops.push_back(value);
}

// As the framework lists state: by module in the order of registration, parameters first.
void Recording::sort_inputs() {
  std::vector<size_t> order(program_.inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return std::pair(program_.inputs[i].kind, module_of_input_[i]); });
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int>(i);
  std::vector<ProgramInput> sorted;
  for (const size_t i : order) {
    ProgramInput& input = sorted.emplace_back(std::move(program_.inputs[i]));
    if (input.tied_to >= 0) input.tied_to = place[static_cast<size_t>(input.tied_to)];
    program_.graph.inputs.push_back(input.value);
  }
  program_.inputs = std::move(sorted);
}

Program Recording::finish(const Tensor& loss, const std::vector<Tensor>& outputs) {
  finished_ = true;
  sort_inputs();
  const auto add = [&](ProgramOutput::Kind kind, const Tensor& tensor) {
    ProgramOutput& output = program_.outputs.emplace_back();
    output.kind = kind;
    output.operand.kind = Operand::Kind::value;
    output.operand.value = tensor->value;
    program_.graph.outputs.push_back(output.operand);
  };
  if (loss.defined()) add(ProgramOutput::Kind::loss, loss);
  for (const Tensor& output : outputs) add(ProgramOutput::Kind::user, output);
  return std::move(program_);
}

}  // namespace metaprof::nn
