// What a captured program does without calling an operator: phases, backward, modes, .data and .grad.

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/graph/state.h"
#include "meta/autograd/graph/views.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/optim/optimizer.h"
#include "meta/trace/calls.h"
#include "step/eager/within_backward.h"

namespace metaprof {

// Values of the operands, by their place.
class StepArguments {
 public:
  StepArguments(const GraphNode& node, std::vector<Value> values) : node_(node), values_(std::move(values)) {}

  const std::string& op() const { return node_.op; }
  const Value& value(size_t i) const {
    if (i >= values_.size()) fail("{}: takes more than {} arguments", node_.op, values_.size());
    return values_[i];
  }
  Tensor tensor(size_t i) const {
    if (!value(i).is_tensor() || !value(i).tensor().defined())
      fail("{}: no tensor is known for argument {}", node_.op, i);
    return value(i).tensor();
  }
  Tensor tensor_or_none(size_t i) const { return value(i).is_none() ? Tensor() : tensor(i); }
  std::vector<Tensor> tensors(size_t i) const {
    return value(i).is_tensors() ? value(i).tensors() : std::vector<Tensor>{};
  }
  /// All of them are there.
  std::vector<Tensor> known_tensors(size_t i) const {
    std::vector<Tensor> all = tensors(i);
    for (const Tensor& tensor : all)
      if (!tensor.defined()) fail("{}: a tensor of argument {} is not known", node_.op, i);
    return all;
  }

 private:
  const GraphNode& node_;
  const std::vector<Value> values_;
};

namespace {

template <class Kind, size_t count>
std::optional<Kind> kind_named(std::string_view name, const Kind (&kinds)[count]) {
  for (const Kind kind : kinds)
    if (to_string(kind) == name) return kind;
  return std::nullopt;
}

constexpr Phase kPhasesOfSteps[] = {Phase::setup, Phase::forward, Phase::backward, Phase::optimizer,
                                    Phase::zero_grad};
constexpr Category kPurposes[] = {Category::parameter, Category::buffer, Category::input,
                                  Category::optimizer_state};

Phase phase_of(const StepArguments& given) {
  const auto phase = kind_named(given.value(0).string(), kPhasesOfSteps);
  if (!phase) fail("step::phase: there is no phase '{}'", given.value(0).string());
  return *phase;
}

void set_data(const Tensor& to, const Tensor& from) {
  if (to.is_sparse() || from.is_sparse()) fail("step::set_data: of sparse tensors nothing is known");
  to->storage = from->storage;
  to->dtype = from.dtype();
  to->device = from.device();
  change_geometry(to, from.sizes(), from.strides(), from->offset);
}

// Of an alias.
bool lies_within(const TensorFacts& facts, const Tensor& of) {
  if (of.is_sparse()) return true;
  const int64_t bytes = multiply(facts.offset, element_size(of.dtype())) +
                        storage_bytes(facts.sizes, facts.strides, of.dtype());
  return facts.offset >= 0 && bytes <= of->storage->bytes;
}

// Of nodes on the current thread.
void leave_out_numbers(Session& session, int64_t count) {
  if (count < 0 || count > UINT32_MAX) fail("step::nodes: {} is no count of nodes", count);
  (session.backward_thread ? autograd_state(session).device_thread_sequence : session.sequence) += count;
}

uint16_t stream_numbered(int64_t number) {
  if (number < 0 || number > UINT16_MAX) fail("step::stream: {} is no stream", number);
  return static_cast<uint16_t>(number);
}

Gradients run_backward(Session& session, const StepArguments& given, const std::vector<Tensor>& roots) {
  const std::vector<Tensor> gradients = given.tensors(1), inputs = given.known_tensors(4);
  return backward(session, roots, gradients, inputs,
                  {.retain_graph = given.value(2).boolean(),
                   .create_graph = given.value(3).boolean(),
                   .accumulate = given.value(5).boolean(),
                   .allow_unused = true});
}

std::unique_ptr<AutocastRegion> entered_autocast(Session& session, const StepArguments& given) {
  const auto dtype = dtype_numbered(given.value(1).integer());
  if (!dtype) fail("step::autocast_enter: {} is no dtype", given.value(1).integer());
  return std::make_unique<AutocastRegion>(session, given.value(0).boolean(), *dtype,
                                          given.value(2).boolean());
}

}  // namespace

// What holds from here on, until it is ended.
void Interpreter::run_mode_call(StepCall call, const StepArguments& given) {
  switch (call) {
    case StepCall::phase: {
      const Phase phase = phase_of(given);
      const int64_t step = given.value(1).integer(), micro = given.value(2).integer();
      begin_phase(phase, step, micro);
      break;
    }
    case StepCall::pause: session_.trace.add({.kind = Event::Kind::pause}); break;
    case StepCall::grad_mode: session_.modes.grad = given.value(0).boolean(); break;
    case StepCall::inference_mode: session_.modes.inference = given.value(0).boolean(); break;
    case StepCall::attention:
      session_.modes.flash_attention = given.value(0).boolean();
      session_.modes.efficient_attention = given.value(1).boolean();
      session_.modes.math_attention = given.value(2).boolean();
      session_.modes.cudnn_attention = given.value(3).boolean();
      break;
    case StepCall::nodes: leave_out_numbers(session_, given.value(0).integer()); break;
    case StepCall::engine_thread: session_.backward_thread = given.value(0).boolean(); break;
    case StepCall::autocast_enter: autocast_.push_back(entered_autocast(session_, given)); break;
    case StepCall::autocast_leave:
      if (autocast_.empty()) fail("step::autocast_leave: no region of autocast is open");
      autocast_.pop_back();
      break;
    case StepCall::saved_on_host_enter:
      saved_on_host_.push_back(std::make_unique<SavedTensorHooksScope>(
          session_, save_on_host(session_, given.value(0).boolean())));
      break;
    case StepCall::saved_on_host_leave:
      if (saved_on_host_.empty()) fail("step::saved_on_host_leave: no region is open");
      saved_on_host_.pop_back();
      break;
    case StepCall::stream: session_.stream = stream_numbered(given.value(0).integer()); break;
    case StepCall::optimizer_enter:
    case StepCall::optimizer_leave: break;
    default: fail("{}: cannot be run here", given.op());
  }
}

// What happens to the memory of tensors.
void Interpreter::run_memory_call(StepCall call, const StepArguments& given) {
  switch (call) {
    case StepCall::keep_versions_enter: {
      auto& kept = versions_.emplace_back();
      for (const Tensor& tensor : given.known_tensors(0))
        if (!tensor.is_sparse()) kept.emplace_back(tensor, tensor->version());
      break;
    }
    case StepCall::keep_versions_leave: leave_versions(); break;
    case StepCall::empty_cache: empty_cache(); break;
    case StepCall::clear_saved: clear_saved(); break;
    case StepCall::clear_gradients: clear_gradients(); break;
    case StepCall::keep: break;  // what a region takes it holds
    case StepCall::record_stream:
      record_stream(given.tensor(0), stream_numbered(given.value(1).integer()));
      break;
    case StepCall::resize_storage: resize_storage(given.tensor(0), given.value(1).integer()); break;
    default: run_mode_call(call, given);
  }
}

void Interpreter::run_step_call(const Code& code, const Instruction& instruction, Values& values) {
  const GraphNode& node = *instruction.node;
  std::vector<Value> operands;
  for (const Operand& operand : node.operands) operands.push_back(evaluate(operand, values));
  const StepArguments given(node, std::move(operands));
  ResultList results;
  switch (*instruction.step) {
    case StepCall::backward: {
      const std::vector<Tensor> roots = given.known_tensors(0);
      note_loss(roots);
      WithinBackward within(*this, code, instruction, roots, values);
      Gradients made = run_backward(session_, given, roots);
      within.run_rest();
      if (!given.value(5).boolean()) results.push_back(Value(Value::Tensors(made.begin(), made.end())));
      break;
    }
    case StepCall::backward_leave:
    case StepCall::hook_enter:
    case StepCall::hook_leave: fail("{}: no backward has been entered", node.op);
    case StepCall::hook: add_hook(given.value(0).integer(), given.value(1).string(), given.tensor(2)); break;
    case StepCall::edge: results.push_back(Value(tensor_at(session_, gradient_edge(given.tensor(0))))); break;
    case StepCall::gradient: {
      const Tensor gradient = given.tensor(0).grad();
      if (!gradient.defined()) return as_recorded(code, node, values, "it has no gradient");
      results.push_back(Value(gradient));
      break;
    }
    case StepCall::set_gradient: given.tensor(0)->ensure_extra().grad = given.tensor_or_none(1); break;
    case StepCall::set_data: set_data(given.tensor(0), given.tensor(1)); break;
    case StepCall::alias:
      if (!lies_within(facts_of_result(code, node), given.tensor(0)))
        return as_recorded(code, node, values, "its memory has other bytes");
      results.push_back(Value(made_alias(code, node, given.tensor(0))));
      break;
    case StepCall::integers: hold_integers(given.tensor(0), given.value(1)); break;
    case StepCall::tensor: results.push_back(Value(made_tensor(facts_of_result(code, node)))); break;
    case StepCall::name:
      name_tensor(given.value(0).string(), given.value(1).string(), given.tensor(2));
      break;
    case StepCall::requires_grad: given.tensor(0)->requires_grad = given.value(1).boolean(); break;
    case StepCall::function_enter:
      functions_.push_back(session_.modes.grad);
      session_.modes.grad = false;
      break;
    case StepCall::function_leave: leave_function(node, values); break;
    case StepCall::placed: place_weights(node, given); break;
    case StepCall::optimizer:
      run_optimizer(given.value(0).integer(), given.value(1).string(), given.value(2).string(),
                    given.value(3).string(), given.known_tensors(4));
      break;
    default: run_memory_call(*instruction.step, given);
  }
  store(node, std::move(results), values);
}

// The run had something that this one has not: it goes on with a tensor as the program describes it, which the
// report names.
void Interpreter::as_recorded(const Code& code, const GraphNode& node, Values& values, std::string_view why) {
  if (options_.strict)
    fail(
        "{}: {}: {}, unlike in the run that was captured: leave out --strict to go on with a tensor of its "
        "own",
        program_.origin, node.op, why);
  make_recorded_results(code, node, values, false);
}

void Interpreter::begin_phase(Phase phase, int64_t step, int64_t micro) {
  if (step < 0 || step > UINT32_MAX) fail("step::phase: {} is no step", step);
  session_.begin_phase(phase, static_cast<uint32_t>(step), micro);
  session_.category = phase == Phase::forward ? Category::activation : Category::temporary;
  if (phase == Phase::forward) session_.trace.losses.push_back(0);
}

// The loss of a forward is what the first backward after it begins with.
void Interpreter::note_loss(const std::vector<Tensor>& roots) {
  auto& losses = session_.trace.losses;
  if (!losses.empty() && losses.back() == 0 && !roots.empty() && roots[0]->grad_fn)
    losses.back() = grad_fn(roots[0])->record + 1;
}

// One that was made before the capture began is made when it takes its first step.
void Interpreter::run_optimizer(int64_t number, const std::string& what, const std::string& name,
                                const std::string& implementation, std::vector<Tensor> parameters) {
  auto& optimizer = optimizers_[number];
  if (!optimizer || what == "made") {
    Scoped<Category> born_as(session_.category, Category::optimizer_state);
    optimizer = std::make_unique<Optimizer>(session_, name, optimizer_impl_named(implementation),
                                            std::move(parameters));
  }
  if (what == "step") optimizer->step();
}

// As the operator's record says that moving the module which calls it does.
void Interpreter::place_weights(const GraphNode& node, const StepArguments& given) {
  const Operator* op = session_.registry.find(given.value(0).string());
  if (!op || !op->record.facts.on_placement)
    fail("{}: there is no operator '{}' that wants its weights placed", node.op, given.value(0).string());
  std::vector<Value> arguments(op->schema.arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto named = std::ranges::find(node.operands, op->schema.arguments[i].name, &Operand::name);
    const size_t at = named != node.operands.end() ? size_t(named - node.operands.begin()) : i + 1;
    if (named != node.operands.end() || (at < node.operands.size() && node.operands[at].name.empty()))
      arguments[i] = given.value(at);
  }
  Scoped<bool> without_gradients(session_.modes.grad, false);
  op->record.facts.on_placement(session_, *op, arguments);
}

const TensorFacts& Interpreter::facts_of_result(const Code& code, const GraphNode& node) {
  const bool one = node.targets.size() == 1 && node.targets[0].values.size() == 1;
  const ValueId value = one ? node.targets[0].values[0] : kNoValue;
  if (value == kNoValue || !code.graph->values[size_t(value)].tensor)
    fail("{}: its result has to say what it is, as %x: f32[2,3]", node.op);
  return *code.graph->values[size_t(value)].tensor;
}

Tensor Interpreter::made_tensor(const TensorFacts& facts) const {
  Tensor tensor =
      session_.empty_strided(facts.sizes, facts.strides, facts.dtype, facts.device.value_or(session_.device));
  tensor->requires_grad = facts.requires_grad && is_differentiable(facts.dtype);
  return tensor;
}

// In another batch the sequences of the one that was captured come again.
void Interpreter::hold_integers(const Tensor& list, const Value& numbers) {
  if (numbers.kind() != Value::Kind::integers || list.dim() != 1 || list.dtype() != DType::i64)
    fail("step::integers: needs a list of i64 and its numbers");
  Sizes all = numbers.integers();
  const auto count = static_cast<size_t>(list.numel());
  if (all.size() != count && (program_.resizing.empty() || all.empty()))
    fail("step::integers: {} numbers for a list of {}", all.size(), count);
  const bool sorted = std::ranges::is_sorted(all, std::greater<>());
  const size_t captured = all.size();
  all.resize(count);
  for (size_t i = captured; i < count; ++i) all[i] = all[i % captured];
  if (sorted) std::ranges::sort(all, std::greater<>());
  tell_integers(list, std::move(all));
}

Tensor Interpreter::made_alias(const Code& code, const GraphNode& node, const Tensor& of) const {
  const TensorFacts& facts = facts_of_result(code, node);
  if (of.is_sparse()) return alias(of);
  if (!program_.resizing.empty() && facts.offset == 0 &&
      std::ranges::equal(facts.sizes, exported_sizes(code, node))) {
    Tensor whole = alias(of);
    whole->requires_grad = facts.requires_grad;
    return whole;
  }
  Tensor made = alias(of, facts.sizes, facts.strides, facts.offset);
  made->requires_grad = facts.requires_grad;
  return made;
}

// Whoever looks into the storage sees the new memory: its number in the trace changes, not the object.
void Interpreter::resize_storage(const Tensor& tensor, int64_t bytes) {
  if (bytes < 0) fail("step::resize_storage: {} bytes", bytes);
  if (tensor.is_sparse()) fail("step::resize_storage: of sparse tensors nothing is known");
  Storage& storage = *tensor->storage;
  Ref<Storage> made = session_.allocate(storage.device, bytes);
  std::swap(storage.bytes, made->bytes);
  std::swap(storage.id, made->id);
}

void Interpreter::record_stream(const Tensor& tensor, uint16_t stream) {
  if (tensor.is_sparse()) fail("step::record_stream: of sparse tensors nothing is known");
  session_.trace.add({.kind = Event::Kind::record_stream, .stream = stream, .id = tensor->storage->id});
}

void Interpreter::leave_versions() {
  if (versions_.empty()) fail("step::keep_versions_leave: none are kept");
  for (auto& [tensor, version] : versions_.back()) tensor->version() = version;
  versions_.pop_back();
}

// A call without tensors, which who replays the run knows by its name.
void Interpreter::empty_cache() {
  Trace& trace = session_.trace;
  CallRecord record;
  record.op = trace.intern(kEmptyCache);
  record.module = session_.module;
  record.phase = session_.phase;
  record.first_tensor = static_cast<uint32_t>(trace.tensors.size());
  const auto index = static_cast<uint32_t>(trace.calls.size());
  trace.calls.push_back(record);
  trace.add({.kind = Event::Kind::call, .id = index});
  trace.add({.kind = Event::Kind::end, .id = index});
}

void Interpreter::name_tensor(const std::string& purpose, const std::string& name, const Tensor& tensor) {
  const auto category = kind_named(purpose, kPurposes);
  if (!category) fail("step::name: tensors are for no '{}'", purpose);
  if (tensor.is_sparse()) return;
  Trace& trace = session_.trace;
  const uint32_t storage = tensor->storage->id;
  session_.categorise(*tensor->storage, *category);
  if (trace.storages[storage].name == 0) trace.storages[storage].name = trace.intern(name);
  if (*category != Category::parameter && *category != Category::buffer) return;
  tensor->is_parameter = true;
  // A program that makes one model after another names the next one's as it did the last one's.
  const auto [at, is_new] = named_.try_emplace(trace.intern(name), trace.parameters.size());
  if (is_new) trace.parameters.emplace_back();
  trace.parameters[at->second] = {.names = {name},
                                  .sizes = tensor.sizes(),
                                  .dtype = tensor.dtype(),
                                  .requires_grad = tensor.requires_grad(),
                                  .buffer = *category == Category::buffer,
                                  .storage = storage};
}

}  // namespace metaprof
