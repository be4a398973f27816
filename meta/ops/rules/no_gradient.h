#pragma once
// Operators that make tensors, or take them apart, and compute nothing that counts.

#include "meta/op/record.h"

namespace metaprof {

/// A record whose results have no gradient, without FLOPs.
constexpr Op no_gradient(std::string_view schema, std::string_view summary, void (*meta)(Call&),
                         const Examples& examples, const Facts& facts = {}) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .derivatives = not_differentiable,
          .flops = free_of_flops,
          .examples = examples,
          .facts = facts};
}

}  // namespace metaprof
