#pragma once
// How long Python keeps a value alive: what decides peaks besides autograd. From the source lines and module
// paths of a program's calls (docs/explanation/lifetimes.md):
//
//  - an expression's temporary lives until the call that takes it returns;
//  - what is passed to a function lives until that function returns;
//  - a variable lives until its name is bound again in the same frame, or the frame returns;
//  - a value that is used after its name was bound again has another name, and lives until the frame returns;
//  - what an attribute of the model holds (`self.hidden = x`) lives until it is bound again, in the next run, too.

#include <map>

#include "meta/op/registry.h"
#include "program/program.h"
#include "program/source/frames.h"

namespace metaprof {

/// A variable of a function: of the frame at this level of the stack of the call that makes its value.
struct Variable {
  size_t level = 0;
  std::string name;
};
using Variables = std::map<ValueId, Variable>;

/// Fills in GraphNode::drops of the graph's nodes, GraphNode::keeps where attributes outlive it, and Graph::guesses.
/// Inputs and outputs outlive the graph. `of_regions`: variables that hold results of calls of regions, which were bound inside them.
void find_drops(Graph& graph, const SourceFrames& source, const Registry& registry,
                const Variables& of_regions = {});

/// The variables that a region (`with torch.no_grad():`) binds in the frames in which it stands: they hold its values, the
/// outputs among them, when the region is over.
Variables variables_after(const Graph& region, const SourceFrames& source, const Registry& registry,
                          const Variables& of_regions);

}  // namespace metaprof
