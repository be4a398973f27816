// What a look at one node and those that make its inputs shows to be unnecessary.

#include <algorithm>

#include "step/compiled/ir/aliases.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

bool is_number(const Node& node, size_t i, double number) {
  return node.has_constant(i) && node.constant(i).is_number() &&
         node.constant(i).kind() != Constant::Kind::complex &&
         node.constant(i).kind() != Constant::Kind::boolean && node.constant(i).real() == number;
}

// x + 0, x - 0, x · 1, x / 1 are x, but for integers, whose dtype the number may change.
bool changes_nothing(const Node& node) {
  const TensorDetail& tensor = node.input()->type.tensor;
  if (tensor.dtype && !is_floating(*tensor.dtype)) return false;
  if (node.name == "aten::add.Scalar" || node.name == "aten::sub.Scalar") return is_number(node, 1, 0);
  return (node.name == "aten::mul.Scalar" || node.name == "aten::div.Scalar") && is_number(node, 1, 1);
}

bool has_type_of(const Node& node) {
  const TensorDetail &a = node.input(0)->type.tensor, &b = node.input(1)->type.tensor;
  return a.dtype && a.device && a.dtype == b.dtype && a.device == b.device;
}

// While gradients are off nothing is known to require grad: a leaf that does must not become the result instead.
bool has_no_history(const Node& detach) {
  return !detach.input()->type.may_require_grad() &&
         std::ranges::none_of(detach.output()->uses,
                              [](const Use& use) { return use.user->is(Kind::result); });
}

bool has_sizes(const TensorDetail& tensor, const Constant& sizes) {
  if (!tensor.rank || tensor.sizes.empty() || sizes.kind() != Constant::Kind::integers) return false;
  const Sizes& wanted = sizes.integers();
  return wanted.size() == tensor.sizes.size() &&
         std::ranges::equal(wanted, tensor.sizes, [](int64_t a, const auto& b) { return b && *b == a; });
}

bool is_sum_to_size(const Node& node) { return node.name == "aten::_grad_sum_to_size"; }

// What is summed again, to sizes that are given, need not be summed before.
void skip_first_sum(Node& node) {
  const std::vector<Use> uses = node.output()->uses;
  for (const Use& use : uses)
    if (is_sum_to_size(*use.user) && !use.user->input(1)->type.optional && !use.user->has_constant(1))
      use.user->set_input(0, node.input(0));
}

// What comes in must not go out as a new tensor, nor one result be another (AliasDb::safeToChangeAliasingRelationship).
bool is_result(const Value& value) {
  return std::ranges::any_of(value.uses, [](const Use& use) { return use.user->is(Kind::result); });
}
bool is_known_outside(const Value& value) { return value.node->is(Kind::parameter) || is_result(value); }

// The value that the node's output is; null: none that is known.
Value* same_value(const Node& node) {
  const Node* maker = node.inputs.empty() ? nullptr : node.input()->node;
  if (node.name == "aten::t" && maker->name == "aten::t") return maker->input();
  if (node.name == "aten::neg" && maker->name == "aten::neg") return maker->input();
  if (node.name == "aten::__not__" && maker->name == "aten::__not__") return maker->input();
  if (node.name == "aten::relu" && maker->name == "aten::relu") return node.input();
  if (node.name == "aten::type_as" && has_type_of(node)) return node.input();
  if (is_sum_to_size(node) && node.input(1)->type.kind == Type::Kind::none) return node.input();
  if (node.name == "aten::detach" && has_no_history(node)) return node.input();
  if (node.name == "aten::expand" && node.has_constant(1) &&
      has_sizes(node.input()->type.tensor, node.constant(1)))
    return node.input();
  if (node.name == "aten::__getitem__.t" && maker->is(Kind::list_construct) && node.has_constant(1)) {
    const int64_t count = static_cast<int64_t>(maker->inputs.size()), index = node.constant(1).integer();
    const int64_t at = index < 0 ? index + count : index;
    return at >= 0 && at < count ? maker->input(size_t(at)) : nullptr;
  }
  const bool same = node.is(Kind::call) && changes_nothing(node) &&
                    !(is_known_outside(*node.input()) && is_result(*node.output()));
  return same ? node.input() : nullptr;
}

void replace_length(Node* node) {
  Node* constant = node->owner().create_constant(Constant(node->input()->node->inputs.size()));
  constant->move_before(node);
  node->output()->replace_with(constant->output());
  node->destroy();
}

}  // namespace

void peephole(Graph& graph, const PassContext&) {
  const Aliases aliases(graph);
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  for (Node* node : nodes) {
    if (aliases.touches_written(*node)) continue;
    if (node->is(Kind::list_unpack) && node->input()->node->is(Kind::list_construct) &&
        node->input()->node->inputs.size() == node->outputs.size()) {
      for (size_t i = 0; i < node->outputs.size(); ++i)
        node->output(i)->replace_with(node->input()->node->input(i));
      node->destroy();
    } else if (node->name == "aten::len.t" && node->input()->node->is(Kind::list_construct)) {
      replace_length(node);
    } else if (is_sum_to_size(*node) && node->input(1)->type.kind != Type::Kind::none) {
      skip_first_sum(*node);
    } else if (Value* same = same_value(*node)) {
      node->output()->replace_with(same);
      node->destroy();
    }
  }
}

}  // namespace metaprof::ir
