#include "profiler/unmodelled.h"

#include <algorithm>
#include <map>

namespace metaprof {
namespace {

int64_t output_bytes(const Trace& trace, const CallRecord& call) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < call.outputs; ++i) {
    const TensorRecord& output = trace.tensors[call.first_tensor + call.inputs + i];
    if (output.storage != 0 || output.dims != 0)
      bytes += multiply(numel(trace.shape(output)), element_size(output.dtype));
  }
  return bytes;
}

}  // namespace

std::vector<UnmodelledRow> unmodelled_rows(const Trace& trace) {
  std::map<uint32_t, std::pair<UnmodelledRow, int64_t>> rows;  // by text of the operator, with bytes
  double all_bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase && event.id > 0) break;
    if (event.kind != Event::Kind::call) continue;
    const CallRecord& call = trace.calls[event.id];
    if (call.composite) continue;
    const int64_t bytes = output_bytes(trace, call);
    all_bytes += static_cast<double>(bytes);
    if (!call.unmodelled) continue;
    auto [found, is_new] = rows.try_emplace(call.op);
    auto& [row, row_bytes] = found->second;
    if (is_new) {
      row.op = trace.text(call.op);
      row.module = trace.text(call.module);
    }
    ++row.calls;
    row_bytes += bytes;
  }
  std::vector<UnmodelledRow> sorted;
  for (auto& [op, entry] : rows) {
    entry.first.share_of_output_bytes = all_bytes > 0 ? static_cast<double>(entry.second) / all_bytes : 0;
    sorted.push_back(std::move(entry.first));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.share_of_output_bytes > b.share_of_output_bytes;
  });
  return sorted;
}

}  // namespace metaprof
