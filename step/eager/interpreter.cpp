#include "step/eager/interpreter.h"

#include <algorithm>
#include <span>

#include "core/error.h"
#include "core/shape.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/autograd/modes/branch.h"
#include "meta/autograd/modes/checkpoint.h"
#include "meta/autograd/modes/loops.h"
#include "meta/optim/optimizer.h"
#include "meta/session/limits.h"
#include "step/eager/out_variants.h"
#include "step/eager/unmodelled.h"

namespace metaprof {
namespace {

void drop(const GraphNode& node, std::vector<Value>& values) {
  for (const ValueId value : node.drops) values[size_t(value)] = Value();
}

}  // namespace

Interpreter::Interpreter(Session& session, const Program& program, Options options)
    : session_(session), program_(program), options_(std::move(options)) {
  for (const auto& stack : program.module_stacks) {
    auto& paths = module_paths_.emplace_back();
    for (const ModuleCall& call : stack) paths.emplace_back(call.key, session.trace.intern(call.path));
  }
}

Interpreter::~Interpreter() {
  while (!autocast_.empty()) autocast_.pop_back();
  while (!saved_on_host_.empty()) saved_on_host_.pop_back();
}

const Code& Interpreter::code_of(const Graph& graph) {
  auto& code = codes_[&graph];
  if (!code) {
    const bool chosen = &graph == &program_.graph && !options_.regions.empty();
    code = std::make_unique<Code>(
        make_code(program_, graph, session_.registry, chosen ? options_.regions : regions_of(graph)));
  }
  return *code;
}

std::vector<Value> Interpreter::run(const std::vector<Value>& inputs) {
  std::vector<Value> outputs = run(code_of(program_.graph), inputs);
  move_to_modules(-1);
  return outputs;
}

std::vector<Value> Interpreter::run(const Code& code, Values inputs) {
  const Graph& graph = *code.graph;
  Values values(graph.values.size());
  for (size_t i = 0; i < inputs.size() && i < graph.inputs.size(); ++i)
    if (graph.inputs[i] != kNoValue) values[size_t(graph.inputs[i])] = std::move(inputs[i]);
  run_stretch(code, code.regions, 0, code.instructions.size(), values);
  if (&graph == &program_.graph) keep(values);
  if (program_.captured && &graph == &program_.graph) return values;
  Values outputs;
  for (const Operand& output : graph.outputs) outputs.push_back(evaluate(output, values));
  return outputs;
}

void Interpreter::run_instructions(const Code& code, size_t begin, size_t end, Values& values) {
  for (size_t i = begin; i < end; ++i) {
    const Instruction& instruction = code.instructions[i];
    if (instruction.node->modules >= 0 || program_.captured) move_to_modules(instruction.node->modules);
    const size_t first_event = session_.trace.events.size();
    run_instruction(code, instruction, values);
    if (code.graph == &program_.graph) {
      note_node(first_event, i);
      if (!kept_.empty()) let_kept_go(*instruction.node);
    }
    drop(*instruction.node, values);
    if (instruction.step == StepCall::backward && end_of_backward(code, i) != i) {
      i = end_of_backward(code, i);  // what is within it has run
      drop(*code.instructions[i].node, values);
    }
  }
}

// What attributes of the model hold.
void Interpreter::keep(const Values& values) {
  for (const GraphNode& node : program_.graph.nodes)
    for (const KeptValue& kept : node.keeps) kept_[kept.until].push_back(values[size_t(kept.value)]);
}

void Interpreter::let_kept_go(const GraphNode& node) {
  for (const Target& target : node.targets)
    for (const ValueId value : target.values) kept_.erase(value);
}

// The first call of these events is the first of this node.
void Interpreter::note_node(size_t first_event, size_t node) {
  const auto events = std::span(session_.trace.events).subspan(first_event);
  const auto call = std::ranges::find(events, Event::Kind::call, &Event::kind);
  if (call != events.end()) call->value = static_cast<int64_t>(node) + 1;
}

void Interpreter::run_instruction(const Code& code, const Instruction& instruction, Values& values) {
  switch (instruction.kind) {
    case Instruction::Kind::call: return run_call(code, instruction, values);
    case Instruction::Kind::out: return run_out(instruction, values);
    case Instruction::Kind::region: return run_region(instruction, values);
    case Instruction::Kind::step: return run_step_call(code, instruction, values);
    case Instruction::Kind::collective: return run_collective(code, instruction, values);
    case Instruction::Kind::unmodelled: return run_unmodelled(code, instruction, values);
    case Instruction::Kind::nothing: return;
    case Instruction::Kind::numbers:
      for (const Target& target : instruction.node->targets)
        for (const ValueId value : target.values)
          values[size_t(value)] = Value(*code.graph->values[size_t(value)].number);
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

void Interpreter::run_call(const Code& code, const Instruction& instruction, Values& values) {
  const GraphNode& node = *instruction.node;
  const auto& arguments = instruction.op->schema.arguments;
  std::array<Value, kMostArguments> room;  // make_code has checked that they fit
  const std::span<Value> given = std::span(room).first(arguments.size());
  for (size_t i = 0; i < given.size(); ++i)
    if (arguments[i].has_default) given[i] = arguments[i].default_value;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Instruction::Place place = instruction.places[i];
    given[place.argument] = adapt(instruction, place, evaluate(node.operands[i], values), values);
  }
  move_index_lists(instruction, given);
  if (!program_.resizing.empty()) resize_arguments(code, instruction, given);
  std::optional<AutocastRegion> off;
  if (node.without_autocast && session_.modes.autocast)
    off.emplace(session_, false, session_.modes.autocast_dtype);
  std::optional<Scoped<SizesByData>> sizes;
  if (instruction.first_result) {
    if (instruction.assumed && options_.strict) refuse_assumed(node);
    sizes.emplace(session_.sizes_by_data, SizesByData{instruction.first_result->sizes, instruction.assumed});
  }
  try {
    if (node.copies_to_view) copy_to_view(given);
    store(node, std::move(invoke(session_, *instruction.op, given).list()), values);
  } catch (const Error& error) {
    explain(error);
  }
}

// Of `aten::view`, whose arguments are the tensor and its sizes.
void Interpreter::copy_to_view(std::span<Value> given) const {
  if (!given[0].is_tensor() || !given[0].tensor().defined()) return;  // the dispatcher refuses it
  const Tensor& self = given[0].tensor();
  Sizes strides;
  if (!view_strides(self.sizes(), self.strides(), infer_size(given[1].integers(), self.numel()), strides))
    given[0] = Value(call<"contiguous">(session_, self));
}

void Interpreter::run_out(const Instruction& instruction, Values& values) {
  const GraphNode& node = *instruction.node;
  const auto& arguments = instruction.op->schema.arguments;
  std::vector<Value> given(arguments.size());
  for (size_t i = 0; i < given.size(); ++i)
    if (arguments[i].has_default) given[i] = arguments[i].default_value;
  Value::Tensors outs;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Value value = evaluate(node.operands[i], values);
    if (!instruction.places[i].is_written) {
      given[instruction.places[i].argument] = value;
    } else if (value.is_tensors()) {
      outs.insert(outs.end(), value.tensors().begin(), value.tensors().end());
    } else {
      outs.push_back(value.is_tensor() ? value.tensor() : Tensor());
    }
  }
  call_into(session_, node.op, *instruction.op, given, outs);
}

void Interpreter::refuse_assumed(const GraphNode& node) const {
  fail("{}: {} (module '{}'): {}; or leave out --strict", program_.origin, node.op,
       session_.trace.text(session_.module), program_.assumed.begin()->second);
}

void Interpreter::explain(const Error& error) const {
  if (!program_.resizing.empty())
    fail("{}; a number in the {} does not follow the new sizes of the inputs: {}", error.what(),
         program_.captured ? "program" : "export",
         program_.captured ? "run the program with these sizes" : "export the model with dynamic_shapes");
  if (options_.dtype != DType::f32)
    fail(
        "{}; the source may branch on the dtype, and the export has the branch of fp32: export the model "
        "in 16 bits",
        error.what());
  throw;
}

void Interpreter::store(const GraphNode& node, ResultList results, Values& values) {
  size_t next = 0;
  for (const Target& target : node.targets) {
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

// A loop's function takes lists of inputs, and gives at least what the loop carries on from call to call.
void Interpreter::check_loop(const RegionCall& region, const RegionInputs& inputs) {
  using Kind = RegionCall::Kind;
  if (region.kind != Kind::loop && region.kind != Kind::scan && region.kind != Kind::map) return;
  const size_t lists = region.kind == Kind::scan ? 2 : 1, given = region.body->outputs.size();
  if (inputs.in_operand.size() < lists)
    fail("a loop takes {} of inputs, got {}", lists == 1 ? "a list" : "two lists", inputs.in_operand.size());
  const size_t carried = region.kind == Kind::map ? 0 : inputs.in_operand[0];
  if (given < carried || (region.kind == Kind::loop && given > carried))
    fail("a loop carries {} values from call to call, and its function gives {}", carried, given);
}

void Interpreter::run_region(const Instruction& instruction, Values& values) {
  const GraphNode& node = *instruction.node;
  const RegionCall& region = *instruction.region;
  const RegionInputs inputs = inputs_of(node, region, values);
  check_loop(region, inputs);
  const auto part = [this](const Graph* graph) {
    const Code& code = code_of(*graph);
    return [this, &code](const Values& given) { return run(code, given); };
  };
  const auto body =
      part(region.kind == RegionCall::Kind::branch && !options_.condition ? region.otherwise : region.body);
  Values outputs;
  switch (region.kind) {
    case RegionCall::Kind::gradients: {
      const Scoped<bool> gradients(session_.modes.grad, region.enabled);
      outputs = body(inputs.values);
      break;
    }
    case RegionCall::Kind::autocast: {
      // The region is written with the cache off, although eager's default is on.
      const AutocastRegion autocast(session_, region.enabled, region.dtype.value_or(DType::bf16));
      outputs = body(inputs.values);
      break;
    }
    case RegionCall::Kind::checkpoint: outputs = checkpoint(session_, body, inputs.values); break;
    case RegionCall::Kind::branch:
      outputs = branch(session_, evaluate(node.operands[0], values), body, inputs.values);
      break;
    case RegionCall::Kind::loop:
      outputs = while_loop(session_,
                           {.condition = part(region.condition),
                            .body = body,
                            .carried = inputs.in_operand.at(0),
                            .trips = options_.trips},
                           inputs.values);
      break;
    case RegionCall::Kind::scan:
      outputs = scan(session_, body, inputs.values,
                     {.carried = inputs.in_operand.at(0), .sliced = inputs.in_operand.at(1)});
      break;
    case RegionCall::Kind::map:
      outputs = map_over_slices(session_, body, inputs.values, inputs.in_operand.at(0));
      break;
  }
  ResultList results;
  for (Value& output : outputs) results.push_back(std::move(output));
  store(node, std::move(results), values);
}

Interpreter::RegionInputs Interpreter::inputs_of(const GraphNode& node, const RegionCall& region,
                                                 const Values& values) const {
  RegionInputs inputs;
  for (size_t i = region.first_argument; i < node.operands.size(); ++i) {
    if (!node.operands[i].name.empty()) continue;  // an option of the operator
    const size_t before = inputs.values.size();
    const Value value = evaluate(node.operands[i], values);
    if (value.is_tensors()) {
      for (const Tensor& tensor : value.tensors()) inputs.values.emplace_back(tensor);
    } else if (value.kind() == Value::Kind::integers) {
      for (const int64_t number : value.integers()) inputs.values.emplace_back(number);
    } else {
      inputs.values.push_back(value);
    }
    inputs.in_operand.push_back(inputs.values.size() - before);
  }
  return inputs;
}

void Interpreter::run_unmodelled(const Code& code, const Instruction& instruction, Values& values) {
  const GraphNode& node = *instruction.node;
  if (options_.strict)
    fail("{}: operator {} is not known (module '{}'): leave out --strict to go on with its recorded results",
         program_.origin, node.op, session_.trace.text(session_.module));
  make_recorded_results(code, node, values, false);
}

// The ranks' library takes its memory outside the allocator: what a collective makes is all that it takes there.
void Interpreter::run_collective(const Code& code, const Instruction& instruction, Values& values) {
  const GraphNode& node = *instruction.node;
  const bool waits = node.op.starts_with("_c10d_functional::wait_tensor");
  if (!waits) return make_recorded_results(code, node, values, true);
  if (node.operands.empty() || !evaluate(node.operands[0], values).is_tensor())
    fail("{}: no tensor is known for argument 0", node.op);
  store(node, {evaluate(node.operands[0], values)}, values);
}

void Interpreter::make_recorded_results(const Code& code, const GraphNode& node, Values& values,
                                        bool is_known) {
  std::vector<Value> arguments;
  for (const Operand& operand : node.operands)
    if (operand.kind != Operand::Kind::graph && operand.kind != Operand::Kind::unknown)
      arguments.push_back(evaluate(operand, values));
  std::vector<TensorFacts> facts;
  std::vector<ValueId> targets;
  for (const Target& target : node.targets) {
    for (const ValueId value : target.values) {
      if (value == kNoValue || !code.graph->values[size_t(value)].tensor) continue;
      facts.push_back(*code.graph->values[size_t(value)].tensor);
      targets.push_back(value);
    }
  }
  ResultList results = call_unmodelled(session_, node.op, arguments, facts, is_known);
  for (size_t i = 0; i < targets.size(); ++i) values[size_t(targets[i])] = std::move(results[i]);
}

}  // namespace metaprof
