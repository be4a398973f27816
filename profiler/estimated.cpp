#include "profiler/estimated.h"

#include <algorithm>
#include <map>
#include <span>

namespace metaprof {

std::vector<EstimatedRow> estimated_rows(const Trace& trace) {
  std::map<uint32_t, EstimatedRow> rows;  // by text of the operator
  const auto add = [&](const StorageRecord& storage) {
    const uint32_t op = storage.call == 0 ? 0 : trace.calls[storage.call - 1].op;
    EstimatedRow& row = rows[op];
    if (row.storages == 0) {
      row.op = trace.text(op);
      row.module = trace.text(storage.module);
    }
    ++row.storages;
    row.bytes += storage.bytes;
    row.largest = std::max(row.largest, storage.bytes);
  };
  uint32_t last = 0;  // storage of the first pass
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase && event.id > 0) break;
    if (event.kind != Event::Kind::alloc) continue;
    last = std::max(last, event.id);
    const StorageRecord& storage = trace.storages[event.id];
    if (storage.estimated && storage.bytes.count > 0) add(storage);
  }
  // A workspace of which nobody knows how large it is has no event (meta/ops/sparse).
  for (const StorageRecord& storage : std::span(trace.storages).first(last))
    if (storage.estimated && storage.bytes.count == 0 && storage.category == Category::workspace)
      add(storage);
  std::vector<EstimatedRow> sorted;
  for (auto& [op, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater<>(), &EstimatedRow::bytes);
  return sorted;
}

}  // namespace metaprof
