#pragma once
// What CUDA graphs would cost, as `metaprof cudagraphs` shows it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "graph/cudagraphs/graphed_callables.h"
#include "graph/cudagraphs/step_tree.h"
#include "graph/cudagraphs/whole_network.h"

namespace metaprof {

struct CudagraphsReport {
  std::string model, device;
  std::vector<std::pair<std::string, OptionValue>> options;
  int warmup = 0;                      ///< steps before the whole step is captured
  std::vector<CaptureVerdict> graphs;  ///< forward, backward
  std::optional<WholeNetworkMemory> whole_network;
  std::optional<GraphedCallablesMemory> graphed_callables;
  std::optional<StepTree> tree;
  std::vector<std::string> notes;

  bool all_captured() const;
};

std::string cudagraphs_text(const CudagraphsReport& report);
/// `metaprof.cudagraphs` (docs/explanation/cudagraphs.md).
std::string cudagraphs_json(const CudagraphsReport& report);

/// The tree of recorded graphs as Graphviz draws it.
std::string cudagraphs_dot(const CudagraphsReport& report);

}  // namespace metaprof
