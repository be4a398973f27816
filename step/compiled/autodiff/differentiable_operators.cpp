#include "step/compiled/autodiff/differentiable_operators.h"

#include <algorithm>

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {

bool is_differentiable_in_graph(const Node& node) {
  if (node.is(Kind::autograd_zero) || node.is(Kind::autograd_add) || node.is(Kind::constant_chunk))
    return true;
  return node.is(Kind::call) && !node.op->writes && formula_of(node);
}

bool is_view_outside(const Node& node) {
  static constexpr std::string_view kViews[] = {"aten::view",       "aten::view_as",       "aten::reshape",
                                                "aten::reshape_as", "aten::transpose.int", "aten::expand",
                                                "aten::expand_as"};
  return node.op && std::ranges::find(kViews, node.op->name) != std::end(kViews);
}

}  // namespace metaprof::ir
