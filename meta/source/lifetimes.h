#pragma once
// How long Python keeps a value alive: what decides peaks besides autograd. From the source lines and module
// paths of a program's calls (docs/lifetimes.md):
//
//  - an expression's temporary lives until the call that takes it returns;
//  - what is passed to a function lives until that function returns;
//  - a variable lives until its name is bound again in the same frame, or the frame returns;
//  - a value that is used after its name was bound again has another name, and lives until the frame returns.

#include <vector>

#include "meta/op/registry.h"
#include "meta/program/program.h"

namespace metaprof {

/// For each value of the graph, the index of the node after which it is dropped; the number of nodes for
/// values that outlive the graph (inputs, outputs), −1 for values without a producer.
std::vector<int32_t> value_lifetimes(const Program& program, const Graph& graph, const Registry& registry);

}  // namespace metaprof
