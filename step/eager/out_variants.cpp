#include "step/eager/out_variants.h"

#include <algorithm>

#include "core/error.h"
#include "meta/session/call_in_trace.h"
#include "meta/session/check_arguments.h"

namespace metaprof {
namespace {

// Overloads that one which only says what is written ("out", "grad_input", "values") may be of, apart from the one
// without a name (native_functions.yaml, 2.11).
constexpr std::string_view kOverloadsOfOut[] = {"",
                                                ".Tensor",
                                                ".dim",
                                                ".dim_IntList",
                                                ".int",
                                                ".ScalarOpt_dim",
                                                ".self",
                                                ".start_step",
                                                ".other",
                                                ".Tensor_mode",
                                                ".stable",
                                                ".p",
                                                ".tol_tensor",
                                                ".rcond_tensor"};

bool is_value(const Operand& operand) {
  return operand.kind == Operand::Kind::value || operand.kind == Operand::Kind::values;
}

// An overload is called after the first of what it writes: max.dim_max(…, max=, max_values=).
bool is_called_after(const GraphNode& node, const Operand& first_written) {
  const std::string_view name = node.op;
  return name.substr(name.find('.')).find(first_written.name) != std::string_view::npos;
}

// Every operand has a place, and what is written is as much as the operator makes.
bool takes(const Operator& op, const GraphNode& node) {
  size_t written = 0;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Operand& operand = node.operands[i];
    if (is_out(op, operand)) {
      if (!is_value(operand) || (written == 0 && !is_called_after(node, operand))) return false;
      ++written;
    } else if (operand.name.empty()) {
      if (i >= op.schema.arguments.size()) return false;
      const Argument& argument = op.schema.arguments[i];
      if (is_value(operand) && !argument.is_tensor() && !argument.is_tensors()) return false;
    }
  }
  return written > 0 && written == op.schema.returns.size();
}

// What the operator's record says of the call, with these results in place of new ones.
void run_into(Call& call, const Value::Tensors& outs) {
  Session& session = call.session;
  const Scoped<bool> below(session.modes.below_autograd, true);
  call.op.record.meta.run(call);
  size_t next = 0;
  const auto written = [&](const Tensor& made) {
    if (next >= outs.size()) call.error("there are fewer tensors to write to than results");
    Tensor out = outs[next++];
    if (!out.defined() || out.is_sparse()) call.error("of a tensor that is written nothing is known");
    if (made.defined() && out.sizes() != made.sizes())
      out = metaprof::call<"resize_">(session, out, made.sizes());
    return out;
  };
  for (Value& result : call.results) {
    if (result.is_tensors()) {
      Value::Tensors list;
      for (const Tensor& made : result.tensors()) list.push_back(written(made));
      result = Value(std::move(list));
    } else if (result.is_tensor()) {
      result = Value(written(result.tensor()));
    }
  }
  if (call.op.record.meta.composite) return;
  if (const auto host_code = call.op.host_code[static_cast<int>(call.device().type)]) host_code(call);
}

}  // namespace

bool is_out(const Operator& functional, const Operand& operand) {
  return !operand.name.empty() && functional.schema.find(name_hash(operand.name)) < 0;
}

const Operator* functional_of(const Registry& registry, const GraphNode& node) {
  const std::string_view name = node.op;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const std::string base(name.substr(0, dot));
  const auto fitting = [&](std::string_view overload) {
    const Operator* op = registry.find(base + std::string(overload));
    return op && takes(*op, node) ? op : nullptr;
  };
  // "dim_max" is of ".dim", "Scalar_out" of ".Scalar"; "grad_input" of what has no name of its own.
  const size_t last_word = name.rfind('_');
  if (last_word != std::string_view::npos && last_word > dot)
    if (const Operator* op = fitting(name.substr(dot, last_word - dot))) return op;
  for (const std::string_view overload : kOverloadsOfOut)
    if (const Operator* op = fitting(overload)) return op;
  return nullptr;
}

// Versions are not counted: FSDP2 hides that it writes again to what backward has saved, and a captured program has
// passed PyTorch's own check.
void call_into(Session& session, std::string_view name, const Operator& functional, std::span<Value> given,
               const Value::Tensors& outs) {
  check_arguments(session, functional, given);
  Trace& trace = session.trace;
  CallRecord record;
  record.op = trace.intern(name);
  record.module = session.module;
  record.phase = session.phase;
  record.depth = session.depth;
  record.node = session.node;
  record.composite = functional.record.meta.composite;
  record.first_tensor = static_cast<uint32_t>(trace.tensors.size());
  for (const Value& value : given)
    if (value.is_tensor()) add_tensor(trace, value.tensor());
  record.inputs = static_cast<uint16_t>(trace.tensors.size() - record.first_tensor);
  record.outputs = static_cast<uint16_t>(outs.size());
  for (const Tensor& out : outs) add_tensor(trace, out);
  const auto index = static_cast<uint32_t>(trace.calls.size());
  trace.calls.push_back(record);
  trace.add({.kind = Event::Kind::call, .id = index});
  const EndOfCall end(trace, index);
  const Scoped<uint32_t> inside(session.call, index + 1);
  const Scoped<uint16_t> deeper(session.depth, static_cast<uint16_t>(session.depth + 1));
  Call call{.session = session, .op = functional, .arguments = given, .results = {}};
  run_into(call, outs);
  if (functional.record.flops.count) {
    const FlopCount flops = functional.record.flops.count(call);
    trace.calls[index].counted = {flops.counted};
    trace.calls[index].own = {flops.own};
  }
}

}  // namespace metaprof
