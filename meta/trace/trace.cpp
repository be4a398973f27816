#include "meta/trace/trace.h"

namespace metaprof {

std::string_view to_string(Category category) {
  static constexpr std::string_view kNames[] = {
      "parameter",       "buffer",    "input",     "activation",  "gradient",
      "optimizer_state", "temporary", "workspace", "cached_copy", "kept"};
  return kNames[static_cast<int>(category)];
}

std::string_view to_string(Phase phase) {
  static constexpr std::string_view kNames[] = {"setup",     "forward",   "backward",
                                                "recompute", "optimizer", "zero_grad"};
  return kNames[static_cast<int>(phase)];
}

Trace::Trace() {
  storages.emplace_back();
  intern("");
}

uint32_t Trace::intern(std::string_view text) {
  if (auto found = index_.find(text); found != index_.end()) return found->second;
  const auto index = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  index_.emplace(texts_.back(), index);
  return index;
}

}  // namespace metaprof
