#include "meta/autograd/op_node.h"

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/autograd/engine.h"
#include "meta/core/error.h"

namespace metaprof {
namespace {

// The text of a node's name, looked up once per session and operator.
uint32_t node_text(Session& session, const Operator& op) {
  auto& texts = session.node_texts;
  if (op.id >= texts.size()) texts.resize(op.id + 1, 0);
  if (texts[op.id] == 0) texts[op.id] = session.trace.intern(op.node_name);
  return texts[op.id];
}

const std::vector<Tensor> kNoTensors;

}  // namespace

OpNode::OpNode(const Call& call)
    : Node(call.session, node_text(call.session, call.op), call.session.call), op(call.op) {
  for (uint8_t argument : op.differentiable) {
    first_edge_.push_back(static_cast<uint16_t>(next.size()));
    const Value& value = call.arguments[argument];
    if (value.is_tensors()) {
      for (const Tensor& tensor : value.tensors()) add_next(gradient_edge(tensor));
    } else {
      add_next(gradient_edge(value.tensor()));
    }
  }
  first_edge_.push_back(static_cast<uint16_t>(next.size()));
  record_edges();
  keep_arguments(call);
}

void OpNode::keep_arguments(const Call& call) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Value& value = call.arguments[i];
    const bool is_tensor = value.is_tensor(), is_list = value.is_tensors();
    values_.push_back(is_tensor || is_list ? Value() : value);
    // An argument that is written may get another geometry: the node keeps the one it had.
    const bool written = is_tensor && op.schema.arguments[i].written;
    geometries_.push_back(written     ? Geometry(alias(value.tensor()))
                          : is_tensor ? Geometry(value.tensor())
                                      : Geometry());
    if (is_list) {
      lists_.resize(call.arguments.size());
      for (const Tensor& tensor : value.tensors()) lists_[i].emplace_back(tensor);
    }
  }
}

std::pair<size_t, size_t> OpNode::edges_of(size_t argument) const {
  for (size_t i = 0; i < op.differentiable.size(); ++i)
    if (op.differentiable[i] == argument) return {first_edge_[i], first_edge_[i + 1] - first_edge_[i]};
  return {0, 0};
}

bool OpNode::wanted(size_t edge) const {
  if (!next[edge].valid()) return false;
  const AutogradState& state = autograd_state(session);
  return !state.trim_rows || task_wants(state.task, *next[edge].node);
}

bool OpNode::guard_allows(const SavedPlan& plan) const {
  return plan.guard < 0 || next[edges_of(size_t(plan.guard)).first].valid();
}

void OpNode::save_arguments(const Call& call) {
  saved_.resize(op.saved.size());
  for (size_t i = 0; i < op.saved.size(); ++i) {
    const SavedPlan& plan = op.saved[i];
    if (plan.result || !guard_allows(plan)) continue;
    const Value& value = call.arguments[plan.index];
    if (value.is_tensors()) {
      for (const Tensor& tensor : value.tensors()) saved_[i].many.emplace_back(tensor, *this, false);
      continue;
    }
    Tensor tensor = value.tensor();
    if (!tensor.defined()) continue;
    // An in-place operator whose formula reads self keeps a copy of what it was (recorded: inplace/f32/silu),
    // with its history: second derivatives go through it.
    if (plan.index == 0 && op.schema.arguments[0].written)
      tensor = metaprof::call<"clone">(session, tensor, Value());
    saved_[i].one = SavedTensor(tensor, *this, false);
  }
}

void OpNode::save_results(const Call& call) {
  for (size_t i = 0; i < op.saved.size(); ++i) {
    const SavedPlan& plan = op.saved[i];
    if (!plan.result) continue;
    const Value& value = call.results[plan.index];
    if (value.is_tensors()) {
      for (const Tensor& tensor : value.tensors()) saved_[i].many.emplace_back(tensor, *this, true);
    } else {
      saved_[i].one = SavedTensor(value.tensor(), *this, true);
    }
  }
}

void OpNode::release_variables() {
  for (int results = 0; results < 2; ++results) {  // arguments first, then results, as recorded
    for (size_t i = 0; i < saved_.size(); ++i) {
      if (op.saved[i].result != bool(results)) continue;
      saved_[i].one.release();
      for (SavedTensor& saved : saved_[i].many) saved.release();
    }
  }
}

Gradients OpNode::apply(Gradients& incoming) {
  Gradients outgoing;
  outgoing.resize(next.size());
  bool any = false;
  for (const Tensor& gradient : incoming) any |= gradient.defined();
  SmallVector<Tensor, 6> saved;
  std::vector<std::vector<Tensor>> lists;
  for (size_t i = 0; i < saved_.size(); ++i) {
    saved.push_back(saved_[i].one.unpack(*this));
    if (saved_[i].many.empty()) continue;
    lists.resize(saved_.size());
    for (const SavedTensor& one : saved_[i].many) lists[i].push_back(one.unpack(*this));
  }
  if (!any) return outgoing;
  Backward backward{session, *this, incoming, saved, lists, nullptr};
  for (const RowPlan& row : op.rows) {
    bool needed = false;
    for (uint8_t target : row.targets) {
      auto [first, count] = edges_of(target);
      for (size_t e = first; e < first + count; ++e) needed |= wanted(e);
    }
    if (!needed) continue;
    backward.row = &row;
    Gradients gradients = row.formula(backward);
    size_t given = 0;
    for (uint8_t target : row.targets) {
      auto [first, count] = edges_of(target);
      for (size_t e = first; e < first + count && given < gradients.size(); ++e, ++given)
        if (wanted(e)) outgoing[e] = std::move(gradients[given]);
    }
  }
  return outgoing;
}

namespace {
// Position in Operator::saved of what a row calls `name`; an Error if it did not declare to read it.
size_t declared(const Backward& backward, Name name) {
  const Operator& op = backward.node.op;
  for (uint8_t index : backward.row->saved) {
    const SavedPlan& plan = op.saved[index];
    const Argument& argument = plan.result ? op.schema.returns[plan.index] : op.schema.arguments[plan.index];
    if (argument.hash != name.hash) continue;
    autograd_state(backward.session).saved_read |= uint64_t{1} << index;
    return index;
  }
  fail("record of {}: a formula reads '{}' without declaring it", op.name, name.text);
}

size_t argument_named(const Operator& op, Name name) {
  const int index = op.schema.find(name.hash);
  if (index < 0) fail("record of {}: a formula asks for '{}', which is no argument", op.name, name.text);
  return static_cast<size_t>(index);
}
}  // namespace

const Tensor& Backward::operator()(Name name) const { return saved[declared(*this, name)]; }
const std::vector<Tensor>& Backward::list(Name name) const {
  const size_t index = declared(*this, name);
  return index < saved_lists.size() ? saved_lists[index] : kNoTensors;
}
const Value& Backward::operator[](Name name) const { return node.values_[argument_named(node.op, name)]; }

bool Backward::given(Name name) const {
  const size_t index = argument_named(node.op, name);
  return !node.values_[index].is_none() || node.geometries_[index].defined();
}

const TensorImpl* Backward::shape(Name name) const {
  const int argument = node.op.schema.find(name.hash);
  if (argument >= 0) return node.geometries_[size_t(argument)].get();
  const int result = node.op.schema.find_return(name.hash);
  if (result < 0) fail("record of {}: a formula asks for the shape of '{}'", node.op.name, name.text);
  return node.metadata[size_t(result)].get();
}

const std::vector<Geometry>& Backward::shapes(Name name) const {
  return node.lists_[argument_named(node.op, name)];
}

bool Backward::wants(Name name, size_t i) const {
  auto [first, count] = node.edges_of(argument_named(node.op, name));
  return i < count && node.wanted(first + i);
}

}  // namespace metaprof
