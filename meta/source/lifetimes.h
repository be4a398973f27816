#pragma once
// How long Python keeps a value alive: what decides peaks besides autograd. From the source lines and module
// paths of a program's calls (docs/lifetimes.md):
//
//  - an expression's temporary lives until the call that takes it returns;
//  - what is passed to a function lives until that function returns;
//  - a variable lives until its name is bound again in the same frame, or the frame returns;
//  - a value that is used after its name was bound again has another name, and lives until the frame returns.

#include "meta/op/registry.h"
#include "meta/program/program.h"
#include "meta/source/frames.h"

namespace metaprof {

/// Fills in GraphNode::drops of the graph's nodes. Inputs and outputs outlive the graph.
void find_drops(Graph& graph, const SourceFrames& source, const Registry& registry);

}  // namespace metaprof
