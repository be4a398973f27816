#pragma once
// What CUDA graphs would cost.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "step/cudagraphs/graphed_callables.h"
#include "step/cudagraphs/step_tree.h"
#include "step/cudagraphs/whole_network.h"

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
  /// No step as a tree ends with the framework's error.
  bool steps_end_well() const { return !tree || tree->overwritten.empty(); }
};

}  // namespace metaprof
