#include "meta/run/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/autocast.h"
#include "meta/autograd/checkpoint.h"
#include "meta/program/resizing.h"
#include "meta/run/prepared.h"
#include "meta/source/constants.h"
#include "meta/source/conversions.h"
#include "meta/source/dtypes.h"
#include "meta/source/lifetimes.h"

namespace metaprof {

Interpreter::Interpreter(Session& session, const Program& program, Options options)
    : session_(session),
      program_(program),
      options_(std::move(options)),
      made_on_host_(made_on_host(program, session.registry)) {
  for (const auto& stack : program.module_stacks) {
    auto& paths = module_paths_.emplace_back();
    for (const ModuleFrame& frame : stack) paths.emplace_back(frame.key, session.trace.intern(frame.path));
  }
}

Interpreter::~Interpreter() = default;

bool Interpreter::runs_inside(std::string_view op) {
  return op == "higher_order::wrap_with_set_grad_enabled" || op == "higher_order::wrap_with_autocast" ||
         op == "higher_order::tag_activation_checkpoint";
}

Interpreter::Prepared& Interpreter::prepare(const Graph& graph) {
  auto& prepared = prepared_[&graph];
  if (prepared) return *prepared;
  prepared = std::make_unique<Prepared>();
  // Elsewhere the two tensors are one.
  if (options_.other_dtypes) prepared->corrected = undo_conversions(program_, graph, session_.registry);
  const Graph& run = prepared->corrected ? *prepared->corrected : graph;
  prepared->graph = &run;
  for (const GraphNode& node : run.nodes) prepare_step(*prepared, node);
  if (&graph == &program_.graph)
    for (Step& step : prepared->steps) find_index_lists(step);
  const std::vector<ValueId> dtypes = dtype_sources(program_, run);
  const std::vector<char> products = products_of_float32(program_, run, session_.registry);
  for (size_t i = 0; i < dtypes.size(); ++i) {
    prepared->steps[i].dtype_of = dtypes[i];
    prepared->steps[i].without_autocast = products[i];
  }
  const std::vector<int32_t> dropped = value_lifetimes(program_, run, session_.registry);
  for (size_t value = 0; value < dropped.size(); ++value)
    if (dropped[value] >= 0 && size_t(dropped[value]) < prepared->steps.size())
      prepared->steps[size_t(dropped[value])].dropped.push_back(static_cast<ValueId>(value));
  return *prepared;
}

void Interpreter::prepare_step(Prepared& prepared, const GraphNode& node) {
  Step step;
  step.node = &node;
  step.higher_order = node.op.starts_with("higher_order::");
  bool only_numbers = !node.targets.empty();
  for (const Target& target : node.targets)
    for (ValueId value : target.values)
      only_numbers &= value != kNoValue && prepared.graph->values[size_t(value)].number.has_value();
  step.symbolic = only_numbers;
  if (!step.symbolic && !step.higher_order) step.op = session_.registry.find(node.op);
  for (const Operand& operand : node.operands) {
    if (operand.kind == Operand::Kind::unknown) step.op = nullptr;
    if (!step.op) break;
    const int at = operand.name.empty() ? static_cast<int>(step.argument.size())
                                        : step.op->schema.find(name_hash(operand.name));
    if (at < 0 || at >= static_cast<int>(step.op->schema.arguments.size()))
      fail("{}: {} has no argument '{}'", program_.origin, node.op, operand.name);
    step.argument.push_back(at);
  }
  prepared.steps.push_back(std::move(step));
}

void Interpreter::find_index_lists(Step& step) const {
  for (size_t i = 0; i < step.argument.size(); ++i) {
    const Operand& operand = step.node->operands[i];
    if (operand.kind != Operand::Kind::values) continue;
    for (size_t position = 0; position < operand.values.size(); ++position)
      if (made_on_host_.contains(operand.values[position]))
        step.index_lists.push_back({size_t(step.argument[i]), position});
  }
}

std::vector<Value> Interpreter::run(const std::vector<Value>& inputs) {
  Prepared& prepared = prepare(program_.graph);
  if (!options_.checkpoint.empty() && prepared.regions.empty()) prepare_regions(prepared);
  std::vector<Value> outputs = run(prepared, inputs);
  move_to_modules(-1);
  return outputs;
}

std::vector<Value> Interpreter::run(const Prepared& prepared, const std::vector<Value>& inputs) {
  std::vector<Value> values(prepared.graph->values.size());
  for (size_t i = 0; i < inputs.size() && i < prepared.graph->inputs.size(); ++i)
    if (prepared.graph->inputs[i] != kNoValue) values[size_t(prepared.graph->inputs[i])] = inputs[i];
  size_t step = 0;
  for (const Region& region : prepared.regions) {
    run_steps(prepared, step, region.begin, values);
    run_region(prepared, region, values);
    step = region.end;
  }
  run_steps(prepared, step, prepared.steps.size(), values);
  std::vector<Value> outputs;
  for (const Operand& output : prepared.graph->outputs) outputs.push_back(evaluate(output, values));
  return outputs;
}

void Interpreter::run_steps(const Prepared& prepared, size_t begin, size_t end, std::vector<Value>& values) {
  for (size_t i = begin; i < end; ++i) {
    const Step& step = prepared.steps[i];
    if (step.node->modules >= 0) move_to_modules(step.node->modules);
    run_step(prepared, step, values);
    for (ValueId value : step.dropped) values[size_t(value)] = Value();
  }
}

// Leaves and enters modules so that the stack becomes that of the next call.
void Interpreter::move_to_modules(int32_t stack) {
  if (stack == modules_) return;
  static const std::vector<std::pair<std::string, uint32_t>> kNone;
  const auto& before = modules_ >= 0 ? module_paths_[size_t(modules_)] : kNone;
  const auto& after = stack >= 0 ? module_paths_[size_t(stack)] : kNone;
  size_t common = 0;
  while (common < before.size() && common < after.size() && before[common].first == after[common].first)
    ++common;
  for (size_t i = before.size(); i-- > common;) session_.leave_module(before[i].second);
  for (size_t i = common; i < after.size(); ++i) session_.enter_module(after[i].second);
  session_.module = after.empty() ? 0 : after.back().second;
  modules_ = stack;
}

Value Interpreter::evaluate(const Operand& operand, const std::vector<Value>& values) const {
  switch (operand.kind) {
    case Operand::Kind::constant:
      if (operand.constant.kind() == Value::Kind::device && operand.constant.device() == kModelDevice)
        return Value(session_.profile.device());
      return operand.constant;
    case Operand::Kind::value: return values[size_t(operand.value)];
    case Operand::Kind::values: {
      Value::Tensors tensors;
      for (ValueId value : operand.values)
        tensors.push_back(value == kNoValue ? Tensor() : values[size_t(value)].tensor());
      return Value(std::move(tensors));
    }
    case Operand::Kind::integers: {
      Sizes integers;
      for (size_t i = 0; i < operand.numbers.size(); ++i)
        integers.push_back(i < operand.values.size() && operand.values[i] != kNoValue
                               ? values[size_t(operand.values[i])].integer()
                               : operand.numbers[i]);
      return Value(integers);
    }
    default: return Value();
  }
}

void Interpreter::run_step(const Prepared& prepared, const Step& step, std::vector<Value>& values) {
  const GraphNode& node = *step.node;
  if (step.symbolic) {
    for (const Target& target : node.targets)
      for (ValueId value : target.values)
        values[size_t(value)] = Value(*prepared.graph->values[size_t(value)].number);
    return;
  }
  if (step.higher_order) return run_higher_order(prepared, step, values);
  if (!step.op) return run_unmodelled(prepared, step, values);
  if (step.op->record.facts.artefact) return;
  const auto& arguments = step.op->schema.arguments;
  std::array<Value, 32> given;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].has_default) given[i] = arguments[i].default_value;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const auto at = size_t(step.argument[i]);
    given[at] = adapt(arguments[at], step, evaluate(node.operands[i], values), values);
  }
  move_lists(step, given);
  if (!program_.resizing.empty()) resize_arguments(prepared, step, given);
  std::optional<AutocastRegion> off;
  if (step.without_autocast && session_.modes.autocast)
    off.emplace(session_, false, session_.modes.autocast_dtype);
  try {
    store(step, std::move(invoke(session_, *step.op, std::span(given).first(arguments.size())).list()),
          values);
  } catch (const Error& error) {
    if (!program_.resizing.empty())
      fail(
          "{}; a number in the export does not follow the new sizes of the inputs: export the model with "
          "dynamic_shapes",
          error.what());
    if (options_.dtype != DType::f32)
      fail(
          "{}; the source may branch on the dtype, and the export has the branch of fp32: export the model "
          "in 16 bits",
          error.what());
    throw;
  }
}

// A list that indexes becomes a tensor of the device of what it looks into before the operator is called
// (torch/csrc/autograd/python_variable_indexing.cpp).
void Interpreter::move_lists(const Step& step, std::span<Value> given) const {
  for (const Step::IndexList& list : step.index_lists) {
    Value::Tensors indices = given[list.argument].tensors();
    Tensor& index = indices[list.position];
    const Device device = given[0].tensor().device();
    if (index.device() != device) index = call<"to.device">(session_, index, device, index.dtype());
    given[list.argument] = Value(std::move(indices));
  }
}

// What was written down while exporting, but is decided by how the model is run.
Value Interpreter::adapt(const Argument& argument, const Step& step, Value value,
                         const std::vector<Value>& values) const {
  // Exporters switch cuDNN off while they trace; the model runs with it.
  if (argument.name == "cudnn_enabled" || argument.name == "cudnn_enable") return Value(true);
  if (!options_.training) {
    if (argument.name == "train" || argument.name == "training") return Value(false);
    if (argument.name == "dropout_p") return Value(0.0);
  }
  // A dtype that the source does not spell out follows the tensors it was taken from: in a model of 16 bits
  // they all have that type, under autocast one has to be asked.
  if (argument.type != Type::dtype || value.is_none() || value.integer() != static_cast<int64_t>(DType::f32))
    return value;
  if (options_.dtype != DType::f32)
    return names_float32(program_, *step.node) ? value : Value(options_.dtype);
  if (session_.modes.autocast && step.dtype_of != kNoValue && values[size_t(step.dtype_of)].is_tensor()) {
    const DType actual = values[size_t(step.dtype_of)].tensor().dtype();
    if (actual == DType::bf16 || actual == DType::f16) return Value(actual);
  }
  return value;
}

// Sizes that stand as numbers in the call, where an input is not as large as in the export.
void Interpreter::resize_arguments(const Prepared& prepared, const Step& step, std::span<Value> given) const {
  const Resizing& resizing = program_.resizing;
  const auto& arguments = step.op->schema.arguments;
  const auto tensor = std::ranges::find_if(given, [](const Value& value) { return value.is_tensor(); });
  // A factory says where its result lives, also if it takes the rest from a tensor (new_zeros).
  const bool makes = tensor == given.end() || step.op->schema.find(name_hash("device")) >= 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i].name;
    if (makes && (name == "end" || name == "n" || name == "m") && given[i].kind() == Value::Kind::integer)
      given[i] = Value(resized_number(resizing, given[i].integer()));
    if (given[i].kind() != Value::Kind::integers) continue;
    if (name != "size" && name != "shape" && name != "repeats") continue;
    Sizes sizes = given[i].integers();
    if (makes || name == "repeats") {
      for (int64_t& size : sizes) size = resized_number(resizing, size);
    } else {
      const SizesView exported = exported_sizes(prepared, *step.node), actual = tensor->tensor().sizes();
      const auto& result = prepared.graph->values[size_t(step.node->targets.at(0).values.at(0))].tensor;
      if (!result || exported.size() != actual.size()) continue;
      const auto viewed = numel(exported) == numel(result->sizes)
                              ? resized_view(resizing, exported, result->sizes, actual)
                              : resized_expansion(resizing, exported, result->sizes, actual);
      if (viewed) sizes = *viewed;
    }
    given[i] = Value(sizes);
  }
}

// What the file says of the sizes of a call's first tensor.
SizesView Interpreter::exported_sizes(const Prepared& prepared, const GraphNode& node) const {
  for (const Operand& operand : node.operands) {
    if (operand.kind != Operand::Kind::value) continue;
    if (prepared.graph == &program_.graph || prepared.corrected) {
      const auto input = program_.resizing.inputs.find(operand.value);
      if (input != program_.resizing.inputs.end()) return input->second;
    }
    const auto& facts = prepared.graph->values[size_t(operand.value)].tensor;
    if (facts) return facts->sizes;
  }
  return {};
}

void Interpreter::store(const Step& step, ResultList results, std::vector<Value>& values) {
  size_t next = 0;
  for (const Target& target : step.node->targets) {
    if (next >= results.size()) break;
    if (target.list) {
      const Value::Tensors tensors = results[next++].tensors();
      for (size_t i = 0; i < target.values.size() && i < tensors.size(); ++i)
        if (target.values[i] != kNoValue) values[size_t(target.values[i])] = Value(tensors[i]);
    } else {
      if (!target.values.empty() && target.values[0] != kNoValue)
        values[size_t(target.values[0])] = std::move(results[next]);
      ++next;
    }
  }
}

void Interpreter::run_higher_order(const Prepared& prepared, const Step& step, std::vector<Value>& values) {
  const GraphNode& node = *step.node;
  const Graph* body = nullptr;
  std::vector<Value> plain, inputs;
  for (const Operand& operand : node.operands) {
    if (operand.kind == Operand::Kind::graph) {
      if (!body) body = operand.graph.get();
    } else if (!body) {
      plain.push_back(evaluate(operand, values));
    } else if (operand.name.empty()) {
      const Value value = evaluate(operand, values);
      if (value.is_tensors()) {
        for (const Tensor& tensor : value.tensors()) inputs.emplace_back(tensor);
      } else {
        inputs.push_back(value);
      }
    }
  }
  if (!body) return run_unmodelled(prepared, step, values);
  std::vector<Value> outputs;
  if (node.op == "higher_order::wrap_with_set_grad_enabled" && !plain.empty()) {
    Scoped<bool> grad(session_.modes.grad, plain[0].boolean());
    outputs = run(prepare(*body), inputs);
  } else if (node.op == "higher_order::wrap_with_autocast" && plain.size() >= 3) {
    const bool known = !plain[1].is_none();
    // The region is written with the cache off, although eager's default is on.
    AutocastRegion region(session_, plain[2].boolean(),
                          known ? dtype_numbered(plain[1].integer()).value_or(DType::bf16) : DType::bf16);
    outputs = run(prepare(*body), inputs);
  } else if (node.op == "higher_order::tag_activation_checkpoint") {
    const Prepared& region = prepare(*body);
    outputs = checkpoint(
        session_, [this, &region](const std::vector<Value>& values_in) { return run(region, values_in); },
        inputs);
  } else {
    return run_unmodelled(prepared, step, values);
  }
  ResultList results;
  for (Value& output : outputs) results.push_back(std::move(output));
  store(step, std::move(results), values);
}

void Interpreter::run_unmodelled(const Prepared& prepared, const Step& step, std::vector<Value>& values) {
  const GraphNode& node = *step.node;
  std::string_view path = session_.trace.text(session_.module);
  if (options_.strict)
    fail("{}: operator {} is not known (module '{}'): leave out --strict to go on with its recorded results",
         program_.origin, node.op, path);
  std::vector<Value> arguments;
  for (const Operand& operand : node.operands)
    if (operand.kind != Operand::Kind::graph && operand.kind != Operand::Kind::unknown)
      arguments.push_back(evaluate(operand, values));
  std::vector<TensorFacts> facts;
  std::vector<ValueId> targets;
  for (const Target& target : node.targets) {
    for (ValueId value : target.values) {
      if (value == kNoValue || !prepared.graph->values[size_t(value)].tensor) continue;
      facts.push_back(*prepared.graph->values[size_t(value)].tensor);
      targets.push_back(value);
    }
  }
  ResultList results = call_unmodelled(session_, node.op, arguments, facts);
  for (size_t i = 0; i < targets.size(); ++i) values[size_t(targets[i])] = std::move(results[i]);
}

}  // namespace metaprof
