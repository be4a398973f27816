#pragma once
// What a pass is: a rewriting of a graph that leaves what it computes. One file each; passes.cpp is their list.

#include <span>
#include <string_view>

#include "step/compiled/ir/graph.h"

namespace metaprof {
struct Platform;
}

namespace metaprof::ir {

/// What passes are told.
struct PassContext {
  const Registry& registry;
  const Platform& platform;  ///< on which stand-in tensors live while shapes are propagated
  /// A run of fewer differentiable nodes stays outside of differentiable graphs.
  int64_t node_threshold = 2;
  /// A differentiable graph of fewer nodes is put back when it has been differentiated.
  int64_t inline_threshold = 5;
};

struct Pass {
  std::string_view name, summary;
  void (*run)(Graph&, const PassContext&);
  bool is_idempotent = true;  ///< run twice in a row, it does no more than once
};

/// In the order of the phases (compile.h).
std::span<const Pass> passes();
/// Error: there is none of this name; it lists them.
const Pass& pass_named(std::string_view name);

// The passes, each in the file of its name.
void specialise_autograd_zero(Graph&, const PassContext&);
void lower_grad_of(Graph&, const PassContext&);
void remove_expands(Graph&, const PassContext&);
void canonicalise(Graph&, const PassContext&);
void eliminate_dead_code(Graph&, const PassContext&);
void propagate_constants(Graph&, const PassContext&);
void propagate_shapes(Graph&, const PassContext&);
void propagate_requires_grad(Graph&, const PassContext&);
void eliminate_common_subexpressions(Graph&, const PassContext&);
void pool_constants(Graph&, const PassContext&);
void peephole(Graph&, const PassContext&);
void unroll_loops(Graph&, const PassContext&);
void check_in_place(Graph&, const PassContext&);
void create_differentiable_graphs(Graph&, const PassContext&);
void differentiate(Graph&, const PassContext&);
void inline_differentiable_graphs(Graph&, const PassContext&);
void decompose(Graph&, const PassContext&);
void batch_matrix_products(Graph&, const PassContext&);
void fuse_elementwise(Graph&, const PassContext&);

}  // namespace metaprof::ir
