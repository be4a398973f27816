#include "estimate/compare/compare.h"

namespace metaprof {

BaselineFigures figures_of(const ProfileReport& report) {
  const MemoryProfile& memory = report.memory;
  const ByPhase<Flops>& flops = report.counts.total.counted;
  BaselineFigures figures;
  figures.allocated = memory.phases.peak.allocated_bytes.peak;
  figures.requested = memory.phases.peak.requested_bytes.peak;
  figures.reserved = memory.phases.peak.reserved_bytes.peak;
  figures.saved = memory.saved.bytes.count;
  // In a report what is recomputed stands in backward, too.
  figures.flops = (flops.total() + flops.recompute).count;
  figures.out_of_memory = memory.phases.out_of_memory.has_value();
  std::map<std::string, int64_t> saved;
  for (const ModuleRow& row : memory.modules) saved[row.path] = row.saved.count;
  figures.saved_by_module = without_inner_modules(saved);
  for (const SavedByNode& row : memory.saved.by_node) figures.saved_by_node[row.node] += row.bytes.count;
  for (int i = 0; i < kCategories; ++i)
    figures.peak_by_category[std::string(to_string(static_cast<Category>(i)))] =
        memory.peak.by_category[i].count;
  figures.peak_op = memory.peak.op;
  figures.peak_module = memory.peak.module;
  return figures;
}

}  // namespace metaprof
