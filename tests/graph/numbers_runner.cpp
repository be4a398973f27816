#include "tests/graph/numbers_runner.h"

#include <algorithm>

namespace metaprof {

std::vector<size_t> SmallFunction::owners() const {
  std::vector<size_t> owner(inputs + steps.size());
  for (size_t i = 0; i < owner.size(); ++i) owner[i] = i;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind != Kind::sum) owner[inputs + i] = owner[steps[i].left];
  return owner;
}

std::vector<size_t> SmallFunction::written() const {
  const std::vector<size_t> owner = owners();
  std::set<size_t> written;
  for (const Step& step : steps)
    if (step.kind == Kind::add_to && owner[step.left] < inputs) written.insert(owner[step.left]);
  return {written.begin(), written.end()};
}

namespace {

class PlainArithmetic final : public Arithmetic {
 public:
  void set(uint64_t address, Numbers numbers) override { values_[address] = numbers; }
  Numbers get(uint64_t address) override { return values_.at(address); }
  void copy(uint64_t to, uint64_t from) override { values_[to] = values_.at(from); }
  void sum(uint64_t result, uint64_t left, uint64_t right) override {
    const Numbers a = values_.at(left), b = values_.at(right);
    for (size_t n = 0; n < a.size(); ++n) values_[result][n] = a[n] + 2 * b[n];
  }
  void add_to(uint64_t left, uint64_t right, size_t) override {
    const Numbers b = values_.at(right);
    for (size_t n = 0; n < b.size(); ++n) values_.at(left)[n] += b[n];
  }

 private:
  std::map<uint64_t, Numbers> values_;
};

}  // namespace

std::unique_ptr<Arithmetic> plain_arithmetic() { return std::make_unique<PlainArithmetic>(); }

uint64_t NumbersRunner::take(std::set<uint64_t>& used, uint64_t first) {
  uint64_t address = first;
  while (used.contains(address)) ++address;
  used.insert(address);
  return address;
}

MemoryHandle NumbersRunner::handle(uint64_t address, bool in_pool) {
  MemoryHandle made(new GraphMemory{address}, [this, in_pool](const GraphMemory* memory) {
    if (!in_pool) used_.erase(memory->address);
    if (in_pool && pool_is_accounted_) pool_used_.erase(memory->address);
    delete memory;
  });
  if (in_pool) pool_handles_[address] = made;
  return made;
}

MemoryHandle NumbersRunner::make(Numbers numbers) {
  const uint64_t address = take(used_, kOutside);
  arithmetic_->set(address, numbers);
  return handle(address, false);
}

std::vector<uint64_t> NumbersRunner::lay_out(const SmallFunction& function, std::vector<uint64_t> values,
                                             std::set<uint64_t>& used, uint64_t first) {
  for (const SmallFunction::Step& step : function.steps)
    values.push_back(step.kind == SmallFunction::Kind::sum ? take(used, first) : values[step.left]);
  return values;
}

void NumbersRunner::compute(const SmallFunction& function, const std::vector<uint64_t>& values) {
  for (size_t i = 0; i < function.steps.size(); ++i) {
    const SmallFunction::Step& step = function.steps[i];
    const uint64_t left = values[step.left], right = values[step.right];
    if (step.kind == SmallFunction::Kind::sum) arithmetic_->sum(values[function.inputs + i], left, right);
    if (step.kind == SmallFunction::Kind::add_to) arithmetic_->add_to(left, right, i);
  }
}

// Handles of the outputs; what is none of them, and nobody's input, goes back.
MemoryHandles NumbersRunner::finish(const SmallFunction& function, const std::vector<uint64_t>& values,
                                    MemoryHandles inputs, bool in_pool) {
  std::map<uint64_t, MemoryHandle> kept;
  for (const MemoryHandle& input : inputs) kept[input->address] = input;
  MemoryHandles outputs;
  for (const size_t output : function.outputs) {
    MemoryHandle& memory = kept[values[output]];
    if (!memory) memory = handle(values[output], in_pool);
    outputs.push_back(memory);
  }
  std::set<uint64_t>& used = in_pool ? pool_used_ : used_;
  for (size_t i = function.inputs; i < values.size(); ++i)
    if (!kept.contains(values[i])) used.erase(values[i]);
  return outputs;
}

namespace {

std::vector<uint64_t> addresses_of(const MemoryHandles& memories) {
  std::vector<uint64_t> addresses;
  for (const MemoryHandle& memory : memories) addresses.push_back(memory->address);
  return addresses;
}

}  // namespace

MemoryHandles NumbersRunner::run_eagerly(FunctionId id, MemoryHandles inputs) {
  const SmallFunction& function = functions_[static_cast<size_t>(id)];
  const auto values = lay_out(function, addresses_of(inputs), used_, kOutside);
  compute(function, values);
  return finish(function, values, std::move(inputs), false);
}

MemoryHandles NumbersRunner::warm_up(FunctionId id, MemoryHandles inputs) {
  const SmallFunction& function = functions_[static_cast<size_t>(id)];
  const auto values = lay_out(function, addresses_of(inputs), pool_used_, kPool);
  compute(function, values);
  return finish(function, values, std::move(inputs), true);
}

MemoryHandles NumbersRunner::record(GraphNodeId node, FunctionId id, MemoryHandles inputs,
                                    const std::vector<bool>& copied) {
  pool_is_accounted_ = true;
  const SmallFunction& function = functions_[static_cast<size_t>(id)];
  std::vector<uint64_t> values = addresses_of(inputs);
  std::vector<uint64_t> buffers;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!copied[i]) continue;
    const uint64_t buffer = take(pool_used_, kPool);
    arithmetic_->copy(buffer, values[i]);
    values[i] = buffer;
    buffers.push_back(buffer);
    inputs[i] = handle(buffer, true);
  }
  values = lay_out(function, values, pool_used_, kPool);
  compute(function, values);
  MemoryHandles outputs = finish(function, values, std::move(inputs), true);
  recordings_[node] = {.function = id, .values = values, .copied = copied, .pool_after = pool_used_};
  return outputs;
}

MemoryHandles NumbersRunner::replay(GraphNodeId node, MemoryHandles inputs) {
  const Recording& recording = recordings_.at(node);
  const SmallFunction& function = functions_[static_cast<size_t>(recording.function)];
  pool_is_accounted_ = false;
  for (size_t i = 0; i < recording.copied.size(); ++i)
    if (recording.copied[i]) arithmetic_->copy(recording.values[i], inputs[i]->address);
  compute(function, recording.values);
  std::map<uint64_t, MemoryHandle> kept;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && !recording.copied[i]) kept[inputs[i]->address] = inputs[i];
  MemoryHandles outputs;
  for (const size_t output : function.outputs) {
    MemoryHandle& memory = kept[recording.values[output]];
    if (!memory) memory = pool_handles_[recording.values[output]].lock();
    if (!memory) memory = handle(recording.values[output], true);
    outputs.push_back(memory);
  }
  return outputs;
}

void NumbersRunner::resume(GraphNodeId node, const std::vector<uint64_t>& dead) {
  pool_used_ = recordings_.at(node).pool_after;
  for (const uint64_t address : dead) pool_used_.erase(address);
  pool_is_accounted_ = true;
}

void NumbersRunner::overwrite(const std::vector<uint64_t>& addresses) {
  for (const uint64_t address : addresses) pool_used_.erase(address);
}

}  // namespace metaprof
