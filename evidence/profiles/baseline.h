#pragma once
// An earlier report of `metaprof profile --json`, and what has grown since.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "evidence/profiles/profile_file.h"
#include "evidence/results/check_result.h"
#include "meta/step/step.h"

namespace metaprof {

/// What the report was made with, in the words of the command line.
struct BaselineOptions {
  StepOptions step;
  std::optional<int> batch, sequence;
  std::vector<std::string> settings;  ///< of --set
  std::string alloc_conf, workspaces;
};

/// What is compared.
struct BaselineFigures {
  int64_t allocated = 0, requested = 0, reserved = 0;  ///< peaks, in bytes
  int64_t saved = 0;                                   ///< bytes
  int64_t flops = 0;                                   ///< of all phases, as the framework counts them
  bool out_of_memory = false;
  std::map<std::string, int64_t> saved_by_module;   ///< without that of modules within; "(root)"
  std::map<std::string, int64_t> saved_by_node;     ///< "ConvolutionBackward0"
  std::map<std::string, int64_t> peak_by_category;  ///< "activation"
  std::string peak_op, peak_module;                 ///< what ran at the peak; may be empty
};

struct Baseline {
  std::string file, model, device;
  Bytes device_memory;
  BaselineOptions options;
  BaselineFigures figures;
};

/// Errors, with the file and the member: one is missing or of another type; a report of a trace (it does not
/// have the options of its run).
Baseline baseline_of(const ProfileFile& report);

BaselineResult compare(const Baseline& before, const Baseline& after);

}  // namespace metaprof
