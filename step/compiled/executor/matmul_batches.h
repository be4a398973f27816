#pragma once
// Several matrix products as one (step/compiled/passes/batch_matrix_products): which shapes allow it is known when they
// run, since a plan serves all sizes.

#include <vector>

#include "meta/session/call.h"

namespace metaprof::ir {

/// The sum of products a0·b0 + a1·b1 + …, given as all left sides, then all right sides. One product of the
/// concatenated sides if all left sides and all right sides have one shape; else one by one.
metaprof::Value matmul_tree(Session& session, std::vector<metaprof::Value> sides);
/// Products with a shared side, which is the first value. One product of the concatenated other sides if these
/// have one shape; else one by one.
std::vector<metaprof::Value> matmul_side(Session& session, std::vector<metaprof::Value> sides,
                                         bool shared_is_left);

}  // namespace metaprof::ir
