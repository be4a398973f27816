#include "estimate/compare/workspaces.h"

#include <algorithm>
#include <tuple>

namespace metaprof {
namespace {

std::string_view word_of(WorkspaceSource source) {
  switch (source) {
    case WorkspaceSource::table: return "table";
    case WorkspaceSource::planned: return "cudnn";
    case WorkspaceSource::rule: return "rule";
  }
  return "";
}

// Workspaces that have a name are cuBLAS's and the like, whose sizes are the framework's own. A plan's are those that were
// answered for.
std::string_view source_of(const StorageRecord& storage, const WorkspaceSources& sources) {
  if (storage.name != 0) return "rule";
  for (const auto& [bytes, source] : sources.sizes)
    if (bytes == storage.bytes.count) return word_of(source);
  return "rule";
}

}  // namespace

std::vector<WorkspaceRow> workspaces_of(const Trace& trace, const WorkspaceSources& sources) {
  std::vector<WorkspaceRow> rows;
  for (const StorageRecord& storage : trace.storages) {
    if (storage.category != Category::workspace || storage.bytes.count == 0) continue;
    WorkspaceRow row{.op = {}, .bytes = storage.bytes.count, .count = 1, .source = {}};
    if (storage.name != 0)
      row.op = trace.text(storage.name);
    else if (storage.call != 0)
      row.op = trace.text(trace.calls[storage.call - 1].op);
    row.source = source_of(storage, sources);
    const auto same = std::ranges::find_if(rows, [&](const WorkspaceRow& known) {
      return std::tie(known.op, known.bytes, known.source) == std::tie(row.op, row.bytes, row.source);
    });
    if (same == rows.end())
      rows.push_back(std::move(row));
    else
      ++same->count;
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), &WorkspaceRow::bytes);
  return rows;
}

}  // namespace metaprof
