#include "step/eager/within_backward.h"

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/graph/views.h"

namespace metaprof {
namespace {

int64_t hook_of(const GraphNode& node) {
  if (node.operands.empty() || node.operands[0].constant.kind() != Value::Kind::integer)
    fail("{}: the number of the hook is missing", node.op);
  return node.operands[0].constant.integer();
}

size_t end_of_body(const Code& code, size_t enter, size_t end) {
  for (size_t i = enter + 1; i < end; i = end_of_backward(code, i) + 1)
    if (code.instructions[i].step == StepCall::hook_leave) return i;
  fail("step::hook_enter: the calls of hook {} have no end", hook_of(*code.instructions[enter].node));
}

// The node that is found from a root by the numbers of edges.
Ref<Node> node_at(const GraphNode& enter, const std::vector<Tensor>& roots) {
  if (enter.operands.size() != 4) fail("step::hook_enter: takes 1 or 4 arguments");
  const std::string& name = enter.operands[1].constant.string();
  const auto root = static_cast<uint64_t>(enter.operands[2].constant.integer());
  Ref<Node> node = root < roots.size() ? gradient_edge(roots[root]).node : Ref<Node>();
  for (const int64_t i : enter.operands[3].constant.integers()) {
    const bool is_there = node && uint64_t(i) < node->next.size();
    node = is_there ? node->next[size_t(i)].node : Ref<Node>();
  }
  if (!node || node->name() != name)
    fail("step::hook_enter: hook {} runs before {}, which is not where the backward of the run had it",
         hook_of(enter), name);
  return node;
}

}  // namespace

Tensor tensor_at(Session& session, const Edge& edge) {
  if (!edge.valid() || edge.input_nr >= edge.node->outputs.size() ||
      !edge.node->outputs[edge.input_nr].defined())
    fail("step::edge: the graph of autograd has no such edge");
  const Geometry& output = edge.node->outputs[edge.input_nr];
  Tensor tensor(new TensorImpl(output->sizes, output->strides, output->dtype, output->device));
  tensor->storage = session.allocate(output->device, 0);
  set_gradient_edge(tensor, edge);
  return tensor;
}

Interpreter::WithinBackward::WithinBackward(Interpreter& interpreter, const Code& code,
                                            const Instruction& backward, const std::vector<Tensor>& roots,
                                            Values& values)
    : interpreter_(interpreter), code_(code), values_(values) {
  const auto begin = static_cast<size_t>(&backward - code.instructions.data());
  const size_t end = end_of_backward(code, begin);
  for (size_t i = begin + 1; i < end; i = end_of_backward(code, i) + 1) {
    if (code.instructions[i].step != StepCall::hook_enter) continue;
    const size_t leave = end_of_body(code, i, end);
    bodies_.push_back({.hook = hook_of(*code.instructions[i].node), .enter = i, .leave = leave});
    if (code.instructions[i].node->operands.size() > 1) wait_for_node(bodies_.back(), roots);
    i = leave;
  }
  interpreter_.within_.push_back(this);
}

Interpreter::WithinBackward::~WithinBackward() {
  for (HookHandle& hook : before_nodes_) hook.remove();
  interpreter_.within_.pop_back();
}

void Interpreter::WithinBackward::wait_for_node(Body& body, const std::vector<Tensor>& roots) {
  const Ref<Node> node = node_at(*code_.instructions[body.enter].node, roots);
  body.edge = tensor_at(interpreter_.session_, {node, 0});
  before_nodes_.push_back(register_pre_hook(*node, [this, number = body.hook](Gradients& incoming) {
    const std::vector<Tensor> made = run_hook(number, {incoming.begin(), incoming.end()});
    for (size_t i = 0; i < made.size() && i < incoming.size(); ++i) incoming[i] = made[i];
  }));
}

std::vector<Tensor> Interpreter::WithinBackward::run_hook(int64_t number, std::vector<Tensor> gradients) {
  const auto body =
      std::ranges::find_if(bodies_, [&](const Body& one) { return one.hook == number && !one.done; });
  return body == bodies_.end() ? std::vector<Tensor>() : run(*body, std::move(gradients));
}

void Interpreter::WithinBackward::run_rest() {
  for (Body& body : bodies_)
    if (!body.done) run(body, {});
}

std::vector<Tensor> Interpreter::WithinBackward::run(Body& body, std::vector<Tensor> gradients) {
  body.done = true;
  const Instruction& leave = code_.instructions[body.leave];
  const GraphNode& enter = *code_.instructions[body.enter].node;
  const Modes modes = interpreter_.session_.modes;
  const uint16_t stream = interpreter_.session_.stream;
  const int32_t modules = interpreter_.modules_;
  give(body, std::move(gradients));
  body.edge = Tensor();
  interpreter_.run_instructions(code_, body.enter + 1, body.leave, values_);
  std::vector<Tensor> made;
  if (leave.node->operands.size() > 1) {
    const Value results = interpreter_.evaluate(leave.node->operands[1], values_);
    if (results.is_tensors()) made.assign(results.tensors().begin(), results.tensors().end());
  }
  for (const GraphNode* node : {&enter, leave.node})
    for (const ValueId value : node->drops) values_[size_t(value)] = Value();
  interpreter_.move_to_modules(modules);
  interpreter_.session_.modes = modes;
  interpreter_.session_.stream = stream;
  return made;
}

// The values of hook_enter: the gradients, or new tensors in place of those that the engine does not give, and the edge.
void Interpreter::WithinBackward::give(const Body& body, std::vector<Tensor> gradients) {
  const GraphNode& enter = *code_.instructions[body.enter].node;
  size_t next = 0;
  for (const Target& target : enter.targets) {
    for (const ValueId value : target.values) {
      const size_t i = next++;
      if (value == kNoValue) continue;
      if (body.edge.defined() && &target == &enter.targets.back()) {
        values_[size_t(value)] = Value(body.edge);
        continue;
      }
      const auto& facts = code_.graph->values[size_t(value)].tensor;
      Tensor gradient = i < gradients.size() ? gradients[i] : Tensor();
      if (!gradient.defined() && facts) gradient = interpreter_.made_tensor(*facts);
      values_[size_t(value)] = Value(std::move(gradient));
    }
  }
}

void Interpreter::add_hook(int64_t number, const std::string& kind, const Tensor& tensor) {
  if (!tensor.requires_grad()) fail("step::hook: {} has no gradient", describe(tensor));
  if (kind == "gradient")
    register_hook(tensor, [this, number](const Tensor& gradient) {
      const std::vector<Tensor> made = run_hook(number, {gradient});
      return made.empty() ? Tensor() : made[0];
    });
  else if (kind == "accumulated")
    register_post_accumulate_grad_hook(tensor, [this, number](const Tensor&) { run_hook(number, {}); });
  else
    fail("step::hook: there are no hooks '{}'", kind);
}

std::vector<Tensor> Interpreter::run_hook(int64_t number, std::vector<Tensor> gradients) {
  return within_.empty() ? std::vector<Tensor>() : within_.back()->run_hook(number, std::move(gradients));
}

}  // namespace metaprof
