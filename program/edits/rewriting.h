#pragma once
// What the changes of a captured program share: places of calls, and graphs from which calls are left out.

#include <string>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// "aten::mul_ (train.py:12)": the call as a message names it.
std::string call_text(const Program& program, const GraphNode& node);

/// A call of `step::` with this name.
bool is_step(const GraphNode& node, std::string_view name);

/// Errors: a `step::name` or `step::phase` has not the arguments that it takes (docs/reference/program.md).
void expect_step_calls(const Program& program);

/// The graph gets these calls; `place` says for each call before, and for the end, where it stands now or what stands
/// there instead. Checkpointed regions follow.
void replace_nodes(Graph& graph, std::vector<GraphNode> nodes, const std::vector<size_t>& place);

/// Only the calls that are kept stay; checkpointed regions follow, and go where nothing is left of them.
void keep_nodes(Graph& graph, const std::vector<char>& kept);

/// The text that an operand passes as a constant; empty if it is none.
std::string text_operand(const GraphNode& node, size_t operand);
/// The same for an integer, or `otherwise`.
int64_t integer_operand(const GraphNode& node, size_t operand, int64_t otherwise);
/// The same for a truth value.
bool flag_operand(const GraphNode& node, size_t operand, bool otherwise);

}  // namespace metaprof
