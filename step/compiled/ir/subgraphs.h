#pragma once
// Moving nodes into a graph that another node holds, and back: how differentiable graphs and fused kernels grow.

#include "step/compiled/ir/aliases.h"
#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// A node of this kind in the node's place, whose attribute `graph` is the node alone.
Node* make_group(Node* node, Kind kind);
/// `producer` stands before the group and nothing between them takes what it makes (make_adjacent): it becomes part
/// of the group. A group of the same kind is merged node by node.
void merge_into(Node* producer, Node* group);
/// `consumer` stands behind the group and takes nothing but its inputs and outputs, and constants: it becomes part of
/// the group. Outputs that nobody takes any more go.
void merge_behind(Node* group, Node* consumer);
/// Puts the nodes of a group back before it, and ends the group. Returns them.
std::vector<Node*> inline_group(Node* group);
/// Takes the nodes between two nodes that need the first behind the second, if the second does not need them. False:
/// it does, or they may not be moved.
bool make_adjacent(Node* producer, Node* group);
/// A node takes, through others of its block, what an earlier one makes.
bool needs(const Node& node, const Node& earlier);
/// The group's nodes that do something: no constants.
std::vector<Node*> working_nodes(const Graph& graph);
/// Takes the node out of the group and puts it behind it. Its inputs become outputs of the group where they have to.
void take_out(Node* group, Node* inner);

}  // namespace metaprof::ir
