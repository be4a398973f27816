#pragma once
// An earlier report of `metaprof profile --json`, and what has grown since.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "step/options.h"
#include "validation/profiles/profile_file.h"
#include "validation/results/check_result.h"

namespace metaprof {

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
  std::string file, model;
  Bytes device_memory;
  RunOptions options;  ///< with which the report was made
  BaselineFigures figures;
};

/// Bytes by module, of each without those of the modules within it; "(root)". `whole`: with them, by path.
std::map<std::string, int64_t> without_inner_modules(const std::map<std::string, int64_t>& whole);

/// Errors, with the file and the member: one is missing or of another type; a report of a trace (it does not
/// have the options of its run).
Baseline baseline_of(const ProfileFile& report);

/// `now`: of the same model and options.
BaselineResult compare(const Baseline& before, const std::string& model_now, const BaselineFigures& now);

}  // namespace metaprof
