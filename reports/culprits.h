#pragma once
// Why a step needs its memory: what is alive at the peak, in groups that people speak of. Equal layers are one
// group, and so are the state of the optimizer, gradients and parameters.

#include <map>
#include <string>
#include <vector>

#include "profiler/timeline.h"

namespace metaprof {

/// Lines of the user's source by the module and operator that ran there, and by the module alone.
struct SourceLines {
  std::map<std::pair<std::string, std::string>, std::string> by_call;  ///< "modeling_llama.py:182"
  std::map<std::string, std::string> by_module;

  /// Empty: it is not known.
  std::string line_of(const std::string& module, const std::string& op) const;
};

struct Culprit {
  std::string what;  ///< "16 × model.layers.*.mlp: silu, mul", "optimizer state of 146 parameters"
  Bytes bytes;
  size_t storages = 0;
  std::string line;  ///< of the largest of them; empty: it is not known, or they have none in common
};

/// The largest first; their bytes sum to those of `held`.
std::vector<Culprit> culprits_of(const std::vector<LargeStorage>& held, const SourceLines& lines);

/// The largest few, and what the others have together. `width`: as in TextTable::text.
std::string culprits_table(const std::vector<Culprit>& culprits, size_t width = 0);

}  // namespace metaprof
