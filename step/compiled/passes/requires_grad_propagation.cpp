// Which values require grad: a result does if an argument does that its operator differentiates.

#include <algorithm>

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

void propagate(Block& block);

void set(Value* value, bool requires_grad) {
  if (value->type.is_tensor() || value->type.is_tensors()) value->type.tensor.requires_grad = requires_grad;
}

bool call_requires_grad(const Node& node) {
  const Operator& op = *node.op;
  if (op.record.meta.composite)
    return std::ranges::any_of(node.inputs,
                               [](const Value* input) { return input->type.may_require_grad(); });
  return std::ranges::any_of(op.differentiable,
                             [&](uint8_t i) { return node.input(i)->type.may_require_grad(); });
}

bool can_require_grad(const Node& node, size_t i) {
  const TensorDetail& tensor = node.output(i)->type.tensor;
  if (node.op && node.is(Kind::call) && node.op->without_gradient >> i & 1) return false;
  return !tensor.dtype || is_differentiable(*tensor.dtype);
}

// What is carried requires grad if it does at the beginning or behind the body.
void propagate_loop(Node& loop) {
  Block& body = *loop.blocks[0];
  const size_t carried = loop.outputs.size();
  std::vector<bool> requires_grad(carried);
  for (size_t i = 0; i < carried; ++i) requires_grad[i] = loop.input(i + 2)->type.may_require_grad();
  for (bool changed = true; changed;) {
    for (size_t i = 0; i < carried; ++i) set(body.input(i + 1), requires_grad[i]);
    propagate(body);
    changed = false;
    for (size_t i = 0; i < carried; ++i) {
      if (requires_grad[i] || !body.output(i + 1)->type.may_require_grad()) continue;
      requires_grad[i] = changed = true;
    }
  }
  for (size_t i = 0; i < carried; ++i) set(loop.output(i), requires_grad[i]);
}

void propagate(Node& node) {
  if (node.is(Kind::loop)) return propagate_loop(node);
  for (const auto& block : node.blocks) propagate(*block);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Value* output = node.output(i);
    bool requires_grad =
        std::ranges::any_of(node.inputs, [](const Value* input) { return input->type.may_require_grad(); });
    if (node.is(Kind::call)) requires_grad = call_requires_grad(node);
    if (node.is(Kind::constant) || node.is(Kind::autograd_zero)) requires_grad = false;
    if (node.is(Kind::branch)) {
      requires_grad = false;
      for (const auto& block : node.blocks) requires_grad |= block->output(i)->type.may_require_grad();
    }
    set(output, requires_grad && can_require_grad(node, i));
  }
}

void propagate(Block& block) {
  for (Node* node : block.nodes()) propagate(*node);
}

}  // namespace

void propagate_requires_grad(Graph& graph, const PassContext&) { propagate(graph.block()); }

}  // namespace metaprof::ir
