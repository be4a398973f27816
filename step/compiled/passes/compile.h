#pragma once
// Compiling: the passes in their five phases, each run by one wrapper that names it, times it, may leave it out and
// verifies the graph behind it.

#include <set>
#include <string>
#include <vector>

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {

/// What a pass did to a graph.
struct PassRecord {
  std::string_view pass;
  int phase = 0;                             ///< 1 to 5; 0: the last clean-up
  size_t nodes_before = 0, nodes_after = 0;  ///< in all blocks, constants left out
  double seconds = 0;
  std::string before, after;  ///< texts, if they are kept
};

struct CompileOptions {
  std::set<std::string, std::less<>> disabled;  ///< names of passes that are left out
  bool verify = true;
  bool keep_texts = false;
  bool fuse = true;
  /// Debugging: every differentiable node lies in a differentiable graph, however small.
  bool without_inlining = false;
  /// Passes of the caller, before those that autograd cannot follow.
  std::vector<Pass> custom;
};

/// Runs one pass. Errors name the pass; the graph's is verified if `options` say so.
void run_pass(const Pass& pass, Graph& graph, const PassContext& context, const CompileOptions& options,
              int phase, std::vector<PassRecord>& records);

/// Brings a graph to executable form and does nothing else: for the fallback.
void run_required_passes(Graph& graph, const PassContext& context, const CompileOptions& options,
                         std::vector<PassRecord>& records);

/// Compiles a graph whose inputs say what is known of them. `gradients`: gradient mode is on.
void compile(Graph& graph, PassContext context, bool gradients, const CompileOptions& options,
             std::vector<PassRecord>& records);

}  // namespace metaprof::ir
