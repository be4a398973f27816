#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

constexpr Pass kPasses[] = {
    {"lower_grad_of", "what is linear in undefined gradients becomes an If", lower_grad_of},
    {"specialise_autograd_zero", "undefined gradients go, with all that is computed from them alone",
     specialise_autograd_zero},
    {"pool_constants", "every constant stands once", pool_constants},
    {"remove_expands", "expansions for a broadcast go", remove_expands},
    {"canonicalise", "one way to write what can be written in several", canonicalise},
    {"eliminate_dead_code", "what nobody takes goes", eliminate_dead_code},
    {"propagate_constants", "arithmetic on constants is done, constant branches are taken",
     propagate_constants},
    {"propagate_shapes", "dtypes, devices and dimensions of what calls make", propagate_shapes},
    {"propagate_requires_grad", "which values require grad", propagate_requires_grad},
    {"eliminate_common_subexpressions", "what is computed twice is computed once",
     eliminate_common_subexpressions},
    {"peephole", "what a look at two nodes shows to be unnecessary goes", peephole},
    {"unroll_loops", "loops of a few trips become their bodies", unroll_loops, false},
    {"check_in_place", "writes that can only be wrong are refused", check_in_place},
    {"create_differentiable_graphs", "runs of differentiable nodes become graphs",
     create_differentiable_graphs},
    {"differentiate", "every differentiable graph gets its gradient", differentiate},
    {"inline_differentiable_graphs", "small differentiable graphs are put back",
     inline_differentiable_graphs},
    {"decompose", "a product with a sum becomes two where the sum can be fused", decompose},
    {"batch_matrix_products", "many products become one", batch_matrix_products},
    {"fuse_elementwise", "elementwise operators become one kernel", fuse_elementwise},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

const Pass& pass_named(std::string_view name) {
  const auto* found = std::ranges::find(kPasses, name, &Pass::name);
  if (found != std::end(kPasses)) return *found;
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  fail("no pass is called '{}'; there are {}", name, fmt::join(names, ", "));
}

}  // namespace metaprof::ir
