// Arithmetic on constants is done; an If with a constant condition becomes the block that it takes; a Loop that makes
// no trip goes.

#include <algorithm>

#include "core/error.h"
#include "step/compiled/ir/numbers.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

void propagate(Block& block);

bool all_constant(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!node.has_constant(i)) return false;
  return true;
}

void become(Node* node, Constant value) {
  Node* constant = node->owner().create_constant(std::move(value));
  constant->move_before(node);
  constant->output()->name = node->output()->name;
  node->output()->replace_with(constant->output());
  node->destroy();
}

void fold_number(Node* node) {
  std::vector<Constant> arguments;
  for (size_t i = 0; i < node->inputs.size(); ++i) arguments.push_back(node->constant(i));
  Constant value;
  try {
    value = number_op(node->name)->evaluate(arguments);
  } catch (const Error&) {
    return;  // a division by zero is an error when it is run, if it is
  }
  become(node, std::move(value));
}

// What the types alone say of a tensor.
void fold_by_type(Node* node) {
  if (node->inputs.empty() || !node->input()->type.is_tensor()) return;
  const TensorDetail& tensor = node->input()->type.tensor;
  if (node->name == "aten::dim" && tensor.rank) return become(node, Constant(*tensor.rank));
  if (node->name == "aten::is_floating_point" && tensor.dtype)
    return become(node, Constant(is_floating(*tensor.dtype)));
  if (node->name == "aten::size.int" && node->has_constant(1) && tensor.rank && !tensor.sizes.empty()) {
    const int64_t dim = wrap_dim(node->constant(1).integer(), *tensor.rank);
    if (const auto size = tensor.sizes[size_t(dim)]) become(node, Constant(*size));
  }
}

// A tensor that is there is not None.
void fold_none(Node* node) {
  const auto is_none = [&](size_t i) -> std::optional<bool> {
    const Type& type = node->input(i)->type;
    if (type.kind == Type::Kind::none) return true;
    if (type.is_tensor() && type.tensor.defined) return !*type.tensor.defined;
    if (!type.optional && type.kind != Type::Kind::any) return false;
    return std::nullopt;
  };
  const auto a = is_none(0), b = is_none(1);
  if (a && b && (*a || *b)) become(node, Constant((*a == *b) == (node->name == "aten::__is__")));
}

void take_block(Node* branch, Block& taken) {
  for (Node* node : taken.nodes()) node->move_before(branch);
  for (size_t i = 0; i < branch->outputs.size(); ++i) branch->output(i)->replace_with(taken.output(i));
  branch->destroy();
}

void fold_branch(Node* branch) {
  if (branch->has_constant(0))
    return take_block(branch, *branch->blocks[branch->constant(0).boolean() ? 0 : 1]);
  for (size_t i = branch->outputs.size(); i-- > 0;) {  // both ways give the same value
    Value *yes = branch->blocks[0]->output(i), *no = branch->blocks[1]->output(i);
    if (yes == no && yes->node->block != branch->blocks[0].get()) branch->output(i)->replace_with(yes);
  }
}

void fold_loop(Node* loop) {
  const bool no_trip = (loop->has_constant(0) && loop->constant(0).integer() <= 0) ||
                       (loop->has_constant(1) && !loop->constant(1).boolean());
  if (!no_trip) return;
  for (size_t i = 0; i < loop->outputs.size(); ++i) loop->output(i)->replace_with(loop->input(i + 2));
  loop->destroy();
}

void propagate(Node* node) {
  for (const auto& block : node->blocks) propagate(*block);
  switch (node->kind) {
    case Kind::number:
      if (all_constant(*node)) return fold_number(node);
      if (node->name == "aten::__is__" || node->name == "aten::__isnot__") return fold_none(node);
      return fold_by_type(node);
    case Kind::list_construct:
      if (node->output()->type.kind == Type::Kind::integers && all_constant(*node)) {
        Sizes integers;
        for (size_t i = 0; i < node->inputs.size(); ++i) integers.push_back(node->constant(i).integer());
        become(node, Constant(integers));
      }
      return;
    case Kind::branch: return fold_branch(node);
    case Kind::loop: return fold_loop(node);
    default: return;
  }
}

void propagate(Block& block) {
  for (Node* node : block.nodes()) propagate(node);
}

}  // namespace

void propagate_constants(Graph& graph, const PassContext& context) {
  propagate(graph.block());
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
