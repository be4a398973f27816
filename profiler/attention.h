#pragma once
// Which implementation of attention a run took, and why not one that comes before it.

#include <string>
#include <utility>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

/// Calls of scaled_dot_product_attention with the same answer.
struct AttentionRow {
  std::string implementation;  ///< "memory-efficient"
  std::vector<std::pair<std::string, std::string>>
      refused;                       ///< ("flash", "it takes no mask"), in order of choice
  std::string query, key;            ///< "f32[4,12,512,64]", of the first call
  std::vector<std::string> modules;  ///< in the order of their calls, each once
  int64_t calls = 0;
};

/// Of the first forward, in the order of the calls. Empty: there was no choice, because the program calls no such
/// operator, or one implementation by its name.
std::vector<AttentionRow> attention_rows(const Trace& trace);

}  // namespace metaprof
