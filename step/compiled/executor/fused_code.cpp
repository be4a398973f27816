#include "step/compiled/executor/fused_code.h"

#include "meta/session/call_in_trace.h"
#include "step/compiled/executor/interpreter.h"

namespace metaprof::ir {
namespace {

int64_t bytes_of(const Tensor& tensor) {
  return tensor.defined() ? multiply(tensor.numel(), element_size(tensor.dtype())) : 0;
}

// The geometry is all that is wanted of a result.
Tensor geometry_of(const Tensor& tensor) {
  return Tensor(
      Ref<TensorImpl>(new TensorImpl(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device())));
}

bool is_on_device(const std::vector<metaprof::Value>& inputs) {
  return !inputs.empty() && inputs[0].is_tensor() && inputs[0].tensor().defined() &&
         inputs[0].tensor().is_cuda();
}

// All elements of a kernel are computed by threads of one grid (torch/csrc/jit/codegen/fuser/executor.cpp, 2.11). A
// concatenation is as many times larger as it has parts. Where sizes differ, calls are made one by one.
bool has_one_size(const Graph& kernel, const std::vector<Tensor>& results) {
  std::optional<Sizes> expected;
  for (size_t i = 0; i < results.size(); ++i) {
    Sizes sizes = results[i].sizes();
    const Node& maker = *kernel.block().output(i)->node;
    if (maker.is(Kind::fused_concat)) {
      int64_t& size = sizes[size_t(wrap_dim(maker.value("dim").integer(), results[i].dim()))];
      const auto parts = static_cast<int64_t>(maker.inputs.size());
      if (size % parts != 0) return false;
      size /= parts;
    }
    if (expected && *expected != sizes) return false;
    expected = sizes;
  }
  return true;
}

// Puts what runs inside into a trace of its own, of which only the sum of its FLOPs is kept: memory that is asked for
// there is asked of nobody.
class OwnTrace {
 public:
  explicit OwnTrace(Session& session) : session_(session), before_(std::move(session.trace)) {
    session.trace = Trace();
    op_texts_ = std::exchange(session.op_texts, {});
    node_texts_ = std::exchange(session.node_texts, {});
  }
  ~OwnTrace() {
    session_.trace = std::move(before_);
    session_.op_texts = std::move(op_texts_);
    session_.node_texts = std::move(node_texts_);
  }
  OwnTrace(const OwnTrace&) = delete;

 private:
  Session& session_;
  Trace before_;
  std::vector<uint32_t> op_texts_, node_texts_;
};

}  // namespace

std::vector<metaprof::Value> FusedCode::run(Session& session, std::vector<metaprof::Value> inputs) const {
  if (!session.has_backends() && is_on_device(inputs))
    if (auto outputs = run_as_one(session, inputs)) return std::move(*outputs);
  return metaprof::ir::run(code_, session, std::move(inputs));
}

std::optional<std::vector<metaprof::Value>> FusedCode::run_as_one(
    Session& session, const std::vector<metaprof::Value>& inputs) const {
  std::vector<Tensor> made;
  Flops counted, own;
  {
    const OwnTrace inside(session);
    const Scoped<uint32_t> module(session.module, 0);
    for (const metaprof::Value& value : metaprof::ir::run(code_, session, inputs))
      made.push_back(geometry_of(value.tensor()));
    for (const CallRecord& call : session.trace.calls) {
      counted += call.counted;
      own += call.own;
    }
  }
  if (!has_one_size(*code_.graph, made)) return std::nullopt;
  Trace& trace = session.trace;
  CallRecord record;
  record.op = trace.intern("prim::FusionGroup");
  record.module = session.module;
  record.phase = session.phase;
  record.depth = session.depth;
  record.node = session.node;
  record.first_tensor = static_cast<uint32_t>(trace.tensors.size());
  record.counted = counted;
  record.own = own;
  for (const metaprof::Value& input : inputs) {
    if (!input.is_tensor()) continue;
    add_tensor(trace, input.tensor());
    ++record.inputs;
    record.moved += {bytes_of(input.tensor())};
  }
  const auto index = static_cast<uint32_t>(trace.calls.size());
  trace.calls.push_back(record);
  trace.add({.kind = Event::Kind::call, .id = index});
  const EndOfCall end(trace, index);
  const Scoped<uint32_t> in_call(session.call, index + 1);
  std::vector<metaprof::Value> outputs;
  for (Tensor& tensor : made) {
    Tensor output = session.empty(tensor.sizes(), tensor.dtype(), tensor.device());
    add_tensor(trace, output);
    ++trace.calls[index].outputs;
    trace.calls[index].moved += {bytes_of(output)};
    outputs.emplace_back(std::move(output));
  }
  return outputs;
}

}  // namespace metaprof::ir
