#include "meta/autograd/engine/op_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/engine/backward.h"
#include "meta/autograd/engine/graph_task.h"
#include "meta/autograd/graph/views.h"

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
const Value kNone;

}  // namespace

OpNode::OpNode(const Call& call)
    : Node(call.session, node_text(call.session, call.op), call.session.call), op(call.op) {
  for (size_t i = 0; i < op.differentiable.size(); ++i) {
    const Value& value = call.arguments[op.differentiable[i]];
    if (value.is_tensors()) {
      first_edge_.resize(op.differentiable.size() + 1);
    } else {
      add_next(gradient_edge(value.tensor()));
    }
  }
  if (!first_edge_.empty()) add_edges_of_lists(call);
  record_edges();
  keep_arguments(call);
}

// Where an argument is a list, an argument's edges cannot be told from its position.
void OpNode::add_edges_of_lists(const Call& call) {
  next.clear();
  for (size_t i = 0; i < op.differentiable.size(); ++i) {
    first_edge_[i] = static_cast<uint16_t>(next.size());
    const Value& value = call.arguments[op.differentiable[i]];
    if (value.is_tensors()) {
      for (const Tensor& tensor : value.tensors()) add_next(gradient_edge(tensor));
    } else {
      add_next(gradient_edge(value.tensor()));
    }
  }
  first_edge_.back() = static_cast<uint16_t>(next.size());
}

void OpNode::keep_arguments(const Call& call) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Value& value = call.arguments[i];
    const Argument& argument = op.schema.arguments[i];
    if (argument.is_tensor()) {
      const Tensor& tensor = value.tensor();
      // An argument that is written may get another geometry: the node keeps the one it had.
      geometries_.push_back(argument.written && tensor.defined() ? Geometry(alias(tensor))
                                                                 : Geometry(tensor));
      continue;
    }
    values_.push_back(value.is_tensors() ? Value() : value);
    if (!value.is_tensors()) continue;
    lists_.resize(call.arguments.size());
    for (const Tensor& tensor : value.tensors()) lists_[i].emplace_back(tensor);
  }
}

std::pair<size_t, size_t> OpNode::edges_of(size_t argument) const {
  for (size_t i = 0; i < op.differentiable.size(); ++i) {
    if (op.differentiable[i] != argument) continue;
    if (first_edge_.empty()) return {i, 1};
    return {first_edge_[i], first_edge_[i + 1] - first_edge_[i]};
  }
  return {0, 0};
}

bool OpNode::wanted(size_t edge) const {
  if (!next[edge].valid()) return false;
  const AutogradState& state = autograd_state(session);
  return !state.trim_rows || task_wants(state.running_task, *next[edge].node);
}

bool OpNode::guard_allows(const SavedPlan& plan) const {
  if (plan.guard == SavedPlan::kForOthers)
    return std::ranges::any_of(op.differentiable, [&](uint8_t argument) {
      return argument != plan.index && next[edges_of(argument).first].valid();
    });
  return plan.guard < 0 || next[edges_of(size_t(plan.guard)).first].valid();
}

void OpNode::save_arguments(const Call& call) {
  saved_.resize(op.saved.size());
  for (size_t i = 0; i < op.saved.size(); ++i) {
    const SavedPlan& plan = op.saved[i];
    if (plan.result || !guard_allows(plan)) continue;
    const Value& value = call.arguments[plan.index];
    if (value.is_tensors()) {
      save_list(i, value.tensors(), false);
      continue;
    }
    Tensor tensor = value.tensor();
    if (!tensor.defined()) continue;
    // An in-place operator whose formula reads self keeps a copy of what it was (recorded: inplace/f32/silu),
    // with its history: second derivatives go through it.
    if (plan.index == 0 && op.schema.arguments[0].written)
      tensor = metaprof::call<"clone">(session, tensor, Value());
    saved_[i] = SavedTensor(tensor, *this, false);
  }
}

void OpNode::save_list(size_t slot, const Value::Tensors& tensors, bool output) {
  saved_lists_.resize(op.saved.size());
  for (const Tensor& tensor : tensors) saved_lists_[slot].emplace_back(tensor, *this, output);
}

void OpNode::save_results(const Call& call) {
  for (size_t i = 0; i < op.saved.size(); ++i) {
    const SavedPlan& plan = op.saved[i];
    if (!plan.result) continue;
    const Value& value = call.results[plan.index];
    if (value.is_tensors()) {
      save_list(i, value.tensors(), true);
    } else {
      saved_[i] = SavedTensor(value.tensor(), *this, true);
    }
  }
}

void OpNode::release_variables() {
  for (int results = 0; results < 2; ++results) {  // arguments first, then results, as recorded
    for (size_t i = 0; i < saved_.size(); ++i) {
      if (op.saved[i].result != bool(results)) continue;
      saved_[i].release();
      if (saved_lists_.empty()) continue;
      for (SavedTensor& saved : saved_lists_[i]) saved.release();
    }
  }
}

std::string_view OpNode::name_of(const SavedTensor& saved) const {
  for (size_t i = 0; i < saved_.size(); ++i) {
    const std::span<const SavedTensor> list = saved_list(i);
    const bool in_list = !list.empty() && &saved >= list.data() && &saved < list.data() + list.size();
    if (&saved != &saved_[i] && !in_list) continue;
    const SavedPlan& plan = op.saved[i];
    return plan.result ? op.schema.returns[plan.index].name : op.schema.arguments[plan.index].name;
  }
  return {};
}

namespace {

// Local variables of the framework's function, which go in the reverse order.
struct UnpackedTensors : SmallVector<Tensor, 4> {
  ~UnpackedTensors() {
    while (!empty()) pop_back();
  }
};

}  // namespace

Gradients OpNode::apply(Gradients& incoming) {
  Gradients outgoing;
  outgoing.resize(next.size());
  bool any = false;
  for (const Tensor& gradient : incoming) any |= gradient.defined();
  UnpackedTensors saved;
  std::vector<std::vector<Tensor>> lists(saved_lists_.size());
  for (size_t i = 0; i < saved_.size(); ++i) {
    saved.push_back(saved_[i].unpack(*this));
    for (const SavedTensor& one : saved_list(i)) lists[i].push_back(one.unpack(*this));
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
const Value& Backward::operator[](Name name) const {
  const size_t index = argument_named(node.op, name);
  return node.op.schema.arguments[index].is_tensor() ? kNone : node.values_[node.op.place[index]];
}

bool Backward::given(Name name) const {
  const size_t index = argument_named(node.op, name), place = node.op.place[index];
  return node.op.schema.arguments[index].is_tensor() ? node.geometries_[place].defined()
                                                     : !node.values_[place].is_none();
}

const TensorImpl* Backward::shape(Name name) const {
  const int argument = node.op.schema.find(name.hash);
  if (argument >= 0) {
    const auto index = static_cast<size_t>(argument);
    if (!node.op.schema.arguments[index].is_tensor()) return nullptr;
    return node.geometries_[node.op.place[index]].get();
  }
  const int result = node.op.schema.find_return(name.hash);
  if (result < 0) fail("record of {}: a formula asks for the shape of '{}'", node.op.name, name.text);
  return node.outputs[size_t(result)].get();
}

const std::vector<Geometry>& Backward::shapes(Name name) const {
  return node.lists_[argument_named(node.op, name)];
}

bool Backward::wants(Name name, size_t i) const {
  auto [first, count] = node.edges_of(argument_named(node.op, name));
  return i < count && node.wanted(first + i);
}

}  // namespace metaprof
