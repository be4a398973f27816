#include "step/compiled/passes/elementwise.h"

#include <algorithm>

#include "meta/ops/rules/elementwise.h"

namespace metaprof::ir {

// How the results of a record follow from its arguments says it: elementwise operators share these rules.
bool is_elementwise(const Node& node) {
  if (!node.is(Kind::call) || node.op->writes || node.outputs.size() != 1) return false;
  const Op& record = node.op->record;
  if (record.facts.random || record.facts.view || record.meta.composite) return false;
  constexpr void (*kRules[])(Call&) = {promoted_meta, promoted_with_numbers_meta, promoted_floating_meta,
                                       same_dtype_meta, boolean_meta};
  return std::ranges::find(kRules, record.meta.run) != std::end(kRules);
}

}  // namespace metaprof::ir
