#include "meta/session/marks.h"

namespace metaprof {
namespace {

bool has(const Tensor& tensor, uint8_t marks) { return tensor.defined() && (tensor->marks & marks) != 0; }

// clone understands both marks, and its result has none.
Tensor without_marks(Session& session, const Tensor& tensor) {
  const BelowAutograd below(session);
  return call<"clone">(session, tensor);
}

// An argument that was replaced, and by what.
struct Replaced {
  size_t argument;
  Value marked;
};

Value of_list(Session& session, const Value::Tensors& tensors, uint8_t marks) {
  Value::Tensors copies = tensors;
  for (Tensor& tensor : copies)
    if (has(tensor, marks)) tensor = without_marks(session, tensor);
  return Value(std::move(copies));
}

bool any_has(const Value::Tensors& tensors, uint8_t marks) {
  for (const Tensor& tensor : tensors)
    if (has(tensor, marks)) return true;
  return false;
}

// What is to be written was a copy: it is copied back, and is the result.
void write_back(Call& call, const Replaced& replaced, const Value& copy) {
  if (!copy.is_tensor()) return;
  for (uint8_t i : call.op.rewritten) {
    if (i != replaced.argument) continue;
    const BelowAutograd below(call.session);
    metaprof::call<"copy_">(call.session, replaced.marked, copy);
    for (Value& result : call.results)
      if (result.is_tensor() && result.tensor().get() == copy.tensor().get()) result = replaced.marked;
  }
}

// native/MathBitsFallback.h, MathOpFallback::fallback_impl.
void marked_kernel_layer(Call& call) {
  const Op& record = call.op.record;
  const auto unread = static_cast<uint8_t>((kConjugated | kNegated) & ~record.facts.reads_marks);
  if (record.meta.composite || record.facts.view || unread == 0) return kernel_layer(call);
  SmallVector<Replaced, 4> replaced;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    Value& argument = call.arguments[i];
    Value copy;
    if (argument.is_tensor() && has(argument.tensor(), unread)) {
      copy = Value(without_marks(call.session, argument.tensor()));
    } else if (argument.is_tensors() && any_has(argument.tensors(), unread)) {
      copy = of_list(call.session, argument.tensors(), unread);
    } else {
      continue;
    }
    replaced.push_back({i, std::exchange(argument, std::move(copy))});
  }
  kernel_layer(call);
  for (Replaced& one : replaced) {
    write_back(call, one, call.arguments[one.argument]);
    call.arguments[one.argument] = std::move(one.marked);
  }
}

}  // namespace

void set_marks(Session& session, const Tensor& view, uint8_t marks) {
  view->marks = marks;
  if (marks != 0) session.layers[static_cast<int>(Layer::kernel)] = marked_kernel_layer;
}

}  // namespace metaprof
