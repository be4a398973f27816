#include <fmt/format.h>

#include "core/formats/display.h"
#include "estimate/results/profile.h"

namespace metaprof {

std::string version_text(int64_t cudnn) {
  return fmt::format("{}.{}.{}", cudnn / 10000, cudnn / 100 % 100, cudnn % 100);
}

std::string workspace_source_line(const WorkspaceSources& workspaces) {
  const int64_t calls = workspaces.table_calls + workspaces.planned_calls;
  if (calls == 0 || !workspace_note(workspaces).empty()) return "";
  std::string text = fmt::format("workspaces of {} calls of cuDNN: ", grouped(calls));
  if (workspaces.planned_calls > 0)
    text +=
        fmt::format("{}, asked of cuDNN {}", human_bytes(workspaces.planned), version_text(workspaces.cudnn));
  if (workspaces.table_calls > 0)
    text += fmt::format("{}{}, from the table of --workspaces", workspaces.planned_calls > 0 ? "; " : "",
                        human_bytes(workspaces.table));
  return text;
}

std::string workspace_note(const WorkspaceSources& workspaces) {
  const int64_t calls = workspaces.table_calls + workspaces.planned_calls + workspaces.rule_calls;
  if (workspaces.unplanned_calls > 0)
    return fmt::format("workspaces of {} calls of cuDNN count as 0 (--workspaces auto asks what it plans)",
                       grouped(workspaces.unplanned_calls));
  if (workspaces.rule_calls == 0) return "";
  const std::string text = fmt::format("workspaces of {} of {} calls of cuDNN are by rule",
                                       grouped(workspaces.rule_calls), grouped(calls));
  if (workspaces.cudnn != 0)
    return text + fmt::format(": cuDNN {} does not say what they take", version_text(workspaces.cudnn));
  if (workspaces.failure.empty()) return text + ": cuDNN is not asked about these calls";  // attention's
  return text + fmt::format(", as no cuDNN was asked: {} (pip install nvidia-cudnn-cu13 makes them exact)",
                            workspaces.failure);
}

}  // namespace metaprof
