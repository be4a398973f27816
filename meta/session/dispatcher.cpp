// The dispatcher: frames of arguments, and the two lowest layers, which write the trace and run a kernel.

#include <fmt/format.h>

#include "core/error.h"
#include "meta/session/backend.h"
#include "meta/session/call.h"
#include "meta/session/call_in_trace.h"
#include "meta/session/check_arguments.h"
#include "meta/session/limits.h"

namespace metaprof {
namespace {

// A call's arguments on the stack: those that are given, which are moved from, and room for the rest.
class Frame {
 public:
  Frame(std::span<Value> given, size_t count) : count_(count) {
    Value* rest = std::uninitialized_move(given.begin(), given.end(), begin());
    std::uninitialized_default_construct(rest, begin() + count);
  }
  ~Frame() { std::destroy_n(begin(), count_); }
  Frame(const Frame&) = delete;
  std::span<Value> values() { return {begin(), count_}; }

 private:
  Value* begin() { return reinterpret_cast<Value*>(memory_); }
  size_t count_;
  alignas(Value) unsigned char memory_[kMostArguments * sizeof(Value)];
};

uint16_t add_tensors(Trace& trace, std::span<const Value> values) {
  const size_t before = trace.tensors.size();
  for (const Value& value : values) {
    if (value.is_tensor()) {
      add_tensor(trace, value.tensor());
    } else if (value.is_tensors()) {
      for (const Tensor& tensor : value.tensors()) add_tensor(trace, tensor);
    }
  }
  return static_cast<uint16_t>(trace.tensors.size() - before);
}

int64_t bytes_of(const Tensor& tensor) {
  if (!tensor.defined()) return 0;
  if (!tensor.is_sparse()) return multiply(tensor.numel(), element_size(tensor.dtype()));
  int64_t bytes = 0;
  for (const Ref<TensorImpl>& part : tensor->extra->parts) bytes += bytes_of(Tensor(part));
  return bytes;
}

// What an ideal kernel reads and writes: every tensor argument and every result once; views nothing.
Bytes bytes_moved(const Call& call) {
  if (call.op.record.facts.view || call.op.record.meta.composite) return {};
  Bytes moved;
  auto count = [&](const Value& value) {
    if (value.is_tensor()) moved += {bytes_of(value.tensor())};
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors()) moved += {bytes_of(tensor)};
  };
  for (const Value& value : call.arguments) count(value);
  for (const Value& value : call.results) count(value);
  return moved;
}

uint32_t op_text(Session& session, const Operator& op) {
  auto& texts = session.op_texts;
  if (op.id >= texts.size()) texts.resize(op.id + 1, 0);
  if (texts[op.id] == 0) texts[op.id] = session.trace.intern(op.name);
  return texts[op.id];
}

// c10/core/ScalarType.h, canCast: complex > real > integer > bool, and downwards only within a kind.
bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  return from == DType::b8 || to != DType::b8;
}

// In-place variants compute their results as the functional operator does, then write them to self.
void write_to_self(Call& call) {
  if (call.arguments[0].is_tensors()) return call.results.clear();
  const Tensor& self = call.arguments[0].tensor();
  const Tensor& result = call.results[0].tensor();
  if (result.defined() && result.sizes() != self.sizes())
    call.error(fmt::format("a result of sizes {} cannot be written in place to {}",
                           to_string(SizesView(result.sizes())), describe(self)));
  if (result.defined() && !can_cast(result.dtype(), self.dtype()))
    call.error(fmt::format("a result of type {} cannot be written in place to {}", long_name(result.dtype()),
                           describe(self)));
  call.results[0] = call.arguments[0];
}

// Tensors that were made in inference mode have no version (c10::VariableVersion, 2.11).
void count_write(const Tensor& tensor) {
  if (!tensor->inference) ++tensor->version();
}

}  // namespace

void record_layer(Call& call) {
  Session& session = call.session;
  Trace& trace = session.trace;
  const auto index = static_cast<uint32_t>(trace.calls.size());
  call.index = index;
  CallRecord& record = trace.calls.emplace_back();
  record.op = op_text(session, call.op);
  record.module = session.module;
  record.phase = session.phase;
  record.composite = call.op.record.meta.composite;
  record.depth = session.depth;
  record.first_tensor = static_cast<uint32_t>(trace.tensors.size());
  record.node = session.node;
  record.assumed = session.sizes_by_data.assumed;
  record.kernel = call.op.record.facts.kernel;
  record.inputs = add_tensors(trace, call.arguments);
  trace.add({.kind = Event::Kind::call, .id = index});
  const EndOfCall end(trace, index);
  {
    Scoped<uint32_t> inside(session.call, index + 1);
    Scoped<uint16_t> deeper(session.depth, session.depth + 1);
    call.next();
  }
  CallRecord& written = trace.calls[index];
  if (!call.op.record.meta.composite) {
    // Inputs and outputs lie together: calls made in between have put theirs behind the inputs.
    if (trace.tensors.size() != written.first_tensor + written.inputs) {
      written.first_tensor = static_cast<uint32_t>(trace.tensors.size());
      written.inputs = add_tensors(trace, call.arguments);
    }
    written.outputs = add_tensors(trace, call.results);
    if (call.op.record.flops.count) {
      const FlopCount flops = call.op.record.flops.count(call);
      written.counted = {flops.counted};
      written.own = {flops.own};
    }
    written.moved = bytes_moved(call);
  }
}

void run_record(Call& call) {
  const Operator& op = call.op;
  op.record.meta.run(call);
  if (op.in_place) write_to_self(call);
  Scoped<bool> below(call.session.modes.below_autograd, true);
  if (auto host_code = op.host_code[static_cast<int>(call.device().type)]) {
    host_code(call);
  } else {
    call.allocate_all();
  }
  if (op.writes) {
    for (uint8_t i : op.rewritten) {
      if (call.arguments[i].is_tensor()) count_write(call.arguments[i].tensor());
      if (call.arguments[i].is_tensors())
        for (const Tensor& tensor : call.arguments[i].tensors()) count_write(tensor);
    }
  }
}

void kernel_layer(Call& call) {
  if (call.op.record.meta.composite) return call.op.record.meta.run(call);
  if (call.session.has_backends()) {
    if (Backend* backend = call.session.backend(call.device())) return backend->run(call);
  }
  run_record(call);
}

Results invoke(Session& session, const Operator& op, std::span<Value> given) {
  const size_t count = op.schema.arguments.size();
  if (count > kMostArguments)
    fail("{} takes {} arguments; at most {} are supported", op.name, count, kMostArguments);
  if (given.size() > count) fail("{} takes {} arguments, got {}", op.name, count, given.size());
  Frame frame(given, count);
  for (size_t i = given.size(); i < count; ++i)
    if (op.schema.arguments[i].has_default) frame.values()[i] = op.schema.arguments[i].default_value;
  check_arguments(session, op, frame.values());
  Call call{.session = session,
            .op = op,
            .arguments = frame.values(),
            .results = {},
            .layer = session.modes.below_autograd ? static_cast<int>(Layer::record) : 0};
  call.next();
  return Results(std::move(call.results));
}

namespace {

// Destroys what a call was given.
struct Taken {
  std::span<Value> values;
  ~Taken() { std::destroy(values.begin(), values.end()); }
};

}  // namespace

Tensor call_slot(Session& session, uint32_t slot, Value* given, size_t count) {
  const Taken taken{{given, count}};
  return invoke(session, session.registry.at_slot(slot), taken.values).list()[0].take_tensor();
}

Results call_slot_for_all(Session& session, uint32_t slot, Value* given, size_t count) {
  const Taken taken{{given, count}};
  return invoke(session, session.registry.at_slot(slot), taken.values);
}

}  // namespace metaprof
