#include "profiler/estimated.h"

#include <algorithm>
#include <map>

namespace metaprof {

std::vector<EstimatedRow> estimated_rows(const Trace& trace) {
  std::map<uint32_t, EstimatedRow> rows;  // by text of the operator
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase && event.id > 0) break;
    if (event.kind != Event::Kind::alloc) continue;
    const StorageRecord& storage = trace.storages[event.id];
    if (!storage.estimated || storage.bytes.count == 0) continue;
    const uint32_t op = storage.call == 0 ? 0 : trace.calls[storage.call - 1].op;
    EstimatedRow& row = rows[op];
    if (row.storages == 0) {
      row.op = trace.text(op);
      row.module = trace.text(storage.module);
    }
    ++row.storages;
    row.bytes += storage.bytes;
    row.largest = std::max(row.largest, storage.bytes);
  }
  std::vector<EstimatedRow> sorted;
  for (auto& [op, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater<>(), &EstimatedRow::bytes);
  return sorted;
}

}  // namespace metaprof
