#pragma once
// What is alive at the peak, in groups that people speak of, and the source lines that made it.

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

struct PeakContributor {
  std::string what;  ///< "16 × model.layers.*.mlp: silu, mul", "optimizer state of 146 parameters"
  Bytes bytes;
  size_t storages = 0;
  std::string line;  ///< of the largest of them; empty: it is not known, or they have none in common
};

}  // namespace metaprof
