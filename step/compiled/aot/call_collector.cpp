#include "step/compiled/aot/call_collector.h"

#include <algorithm>

namespace metaprof {
namespace {

constexpr std::string_view kAccumulate = "AccumulateGrad";

template <class Visit>  // Visit(const Tensor&), undefined ones included
void visit_tensors(std::span<const Value> values, const Visit& visit) {
  for (const Value& value : values) {
    if (value.is_tensor()) visit(value.tensor());
    if (value.is_tensors()) std::ranges::for_each(value.tensors(), visit);
  }
}

std::vector<Tensor> written_tensors(const Call& call) {
  std::vector<Tensor> written;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (call.op.schema.arguments[i].written)
      visit_tensors({&call.arguments[i], 1}, [&](const Tensor& tensor) { written.push_back(tensor); });
  return written;
}

// "aten::add_.Tensor" → "aten::add.Tensor"; of what is not named so the functional variant has a name of its own.
// That of _index_put_impl_ does what index_put does, but for checks.
const Operator* functional_variant(const Registry& registry, const Operator& op) {
  if (op.name == "aten::_index_put_impl_") return registry.find("aten::index_put");
  if (op.name == "aten::bernoulli_.float") return registry.find("aten::bernoulli.p");
  std::string name = op.schema.name;
  const std::string overload = op.schema.overload.empty() ? "" : "." + op.schema.overload;
  if (name.ends_with('_')) {
    name.pop_back();
    return registry.find(name + overload);
  }
  return registry.find(name + "_functional" + overload);
}

bool fills_its_storage(const Tensor& tensor) {
  return tensor.numel() * element_size(tensor.dtype()) == tensor->storage->bytes;
}

}  // namespace

MemoryId CallCollector::add_storage(const Ref<Storage>& storage) {
  const MemoryId memory = add_memory();
  known_[storage.get()] = memory;
  held_.push_back(storage);
  return memory;
}

MemoryId CallCollector::add_input(const Tensor& tensor, InputKind kind) {
  const MemoryId memory = add_storage(tensor->storage);
  inputs_.push_back({.memory = memory, .now = memory, .kind = kind});
  return memory;
}

MemoryId CallCollector::now(MemoryId input) const {
  return std::ranges::find(inputs_, input, &Input::memory)->now;
}

// Memory that no operator made: the body of a composite did.
MemoryId CallCollector::memory_of(const Tensor& tensor) {
  if (!tensor->storage) {
    if (not_modelled_.empty()) not_modelled_ = "sparse tensors are in it";
    return kNoMemory;
  }
  const auto found = known_.find(tensor->storage.get());
  if (found != known_.end()) return found->second;
  if (!tensor.is_cuda()) return kNoMemory;
  const MemoryId memory = add_storage(tensor->storage);
  calls_.push_back(
      {.op = nullptr, .bytes = tensor->storage->bytes, .arguments = {}, .results = {memory}, .drops = {}});
  return memory;
}

MemoryView CallCollector::view_of(const Tensor& tensor) {
  if (const auto copied = copied_gradients_.find(tensor->storage.get()); copied != copied_gradients_.end())
    return copied->second;
  return {.memory = memory_of(tensor),
          .sizes = tensor.sizes(),
          .strides = tensor.strides(),
          .offset = tensor->offset,
          .dtype = tensor.dtype(),
          .device = tensor.device(),
          .wrapped_number = tensor->wrapped_number};
}

CompiledArgument CallCollector::argument_of(const Value& value) {
  CompiledArgument argument;
  argument.is_list = value.is_tensors();
  if (!value.is_tensor() && !value.is_tensors()) {
    argument.constant = value;
    return argument;
  }
  visit_tensors({&value, 1}, [&](const Tensor& tensor) {
    argument.defined.push_back(tensor.defined());
    argument.views.push_back(tensor.defined() ? view_of(tensor) : MemoryView());
  });
  return argument;
}

void CallCollector::note_first_uses(const CompiledCall& call) {
  for (const InputKind kind : {InputKind::buffer, InputKind::parameter, InputKind::user}) {
    visit_uses(call, [&](MemoryId memory) {
      const auto input = std::ranges::find(inputs_, memory, &Input::now);
      if (input == inputs_.end() || input->used || input->kind != kind) return;
      input->used = true;
      used_inputs_.push_back(input->memory);
    });
  }
}

// What becomes of gradients that leave the graphs.
bool CallCollector::is_outside(const Call& call) const {
  if (calls_.size() < backward_begins_ || call.session.node == 0) return false;
  const Trace& trace = call.session.trace;
  return trace.text(trace.nodes[call.session.node - 1].name) == kAccumulate;
}

void CallCollector::note_outside(const Call& call) {
  const Tensor& given = call.arguments[0].tensor();
  if (call.op.name == "aten::clone") {
    copied_gradients_[call.results[0].tensor()->storage.get()] = view_of(given);
  } else if (call.op.name == "aten::copy_") {
    copied_gradients_[given->storage.get()] = view_of(call.arguments[1].tensor());
  }
}

void CallCollector::run(Call& call) {
  if (inside_) return run_record(call);
  const Scoped<bool> inside(inside_, true);
  CompiledCall noted{.op = &call.op, .bytes = 0, .arguments = {}, .results = {}, .drops = {}};
  const bool outside = is_outside(call);
  if (!outside)
    for (const Value& argument : call.arguments) noted.arguments.push_back(argument_of(argument));
  run_record(call);
  if (outside) return note_outside(call);
  note_first_uses(noted);
  note(call, std::move(noted));
}

void CallCollector::note(const Call& call, CompiledCall noted) {
  bool makes = false;
  const auto note_result = [&](const Tensor& tensor) {
    if (!tensor.defined() || !tensor->storage) return noted.results.push_back(kNoMemory);
    const bool alias = known_.contains(tensor->storage.get());
    if (alias && call.op.writes) return;  // the argument that was written to
    makes |= !alias;
    noted.results.push_back(alias ? kNoMemory : add_storage(tensor->storage));
  };
  for (const Value& result : call.results) {
    if (result.is_tensors()) {
      std::ranges::for_each(result.tensors(), note_result);
    } else {
      note_result(result.is_tensor() ? result.tensor() : Tensor());
    }
  }
  if (call.op.writes) return functionalise(call, noted);
  if (makes) calls_.push_back(std::move(noted));
}

// The functional variant returns what was written behind its other results. Nothing becomes of memory of the host.
void CallCollector::functionalise(const Call& call, CompiledCall& noted) {
  noted.op = functional_variant(call.session.registry, call.op);
  const std::vector<Tensor> written = written_tensors(call);
  std::vector<MemoryId> made;  // of each of them
  for (const Tensor& tensor : written) {
    const bool is_known = tensor.defined() && known_.contains(tensor->storage.get());
    made.push_back(is_known ? add_memory() : kNoMemory);
    if (noted.op != nullptr && tensor.defined()) noted.results.push_back(made.back());
    if (noted.op != nullptr || !is_known) continue;
    calls_.push_back({.op = nullptr,
                      .bytes = tensor->storage->bytes,
                      .arguments = noted.arguments,
                      .results = {made.back()},
                      .drops = {}});
    become(tensor, made.back());
  }
  if (noted.op == nullptr) return;
  noted.arguments.resize(std::min(noted.arguments.size(), noted.op->schema.arguments.size()));
  calls_.push_back(std::move(noted));
  for (size_t i = 0; i < written.size(); ++i)
    if (made[i] != kNoMemory) become(written[i], made[i]);
}

// A part that was written to is put into a copy of the whole.
void CallCollector::become(const Tensor& written, MemoryId memory) {
  MemoryId& known = known_.at(written->storage.get());
  if (!fills_its_storage(written)) {
    CompiledArgument parts{
        .constant = {}, .views = {view_of(written), view_of(written)}, .defined = {}, .is_list = true};
    parts.defined = {true, true};
    parts.views[1].memory = memory;
    memory = add_memory();
    calls_.push_back({.op = nullptr,
                      .bytes = written->storage->bytes,
                      .arguments = {std::move(parts)},
                      .results = {memory},
                      .drops = {}});
  }
  const auto input = std::ranges::find(inputs_, known, &Input::now);
  if (input != inputs_.end()) input->now = memory;
  known = memory;
}

}  // namespace metaprof
