#include "estimate/results/peak_contributors.h"

namespace metaprof {

std::string SourceLines::line_of(const std::string& module, const std::string& op) const {
  if (const auto found = by_call.find({module, op}); found != by_call.end()) return found->second;
  if (module.empty()) return "";  // the optimizer's and the loss's, too: no line is that of all
  const auto found = by_module.find(module);
  return found == by_module.end() ? "" : found->second;
}

}  // namespace metaprof
