#include "profiler/unmodelled.h"

#include <algorithm>
#include <map>

#include "profiler/storages/cursor.h"

namespace metaprof {
namespace {

// Views and results written in place are nothing new.
int64_t new_bytes(const Trace& trace, const CallRecord& call) {
  int64_t bytes = 0;
  const TensorRecord* inputs = trace.tensors.data() + call.first_tensor;
  for (uint32_t i = 0; i < call.outputs; ++i) {
    const TensorRecord& output = inputs[call.inputs + i];
    const bool known = std::any_of(inputs, inputs + call.inputs, [&](const TensorRecord& input) {
      return input.storage == output.storage;
    });
    if (output.storage != 0 && !known)
      bytes += multiply(numel(trace.shape(output)), element_size(output.dtype));
  }
  return bytes;
}

}  // namespace

std::vector<UnmodelledRow> unmodelled_rows(const Trace& trace) {
  const auto is_one = [](const CallRecord& call) { return call.unmodelled || call.assumed; };
  if (std::ranges::none_of(trace.calls, is_one)) return {};
  std::map<uint32_t, std::pair<UnmodelledRow, int64_t>> rows;  // by text of the operator, with bytes
  double all_bytes = 0;
  Cursor cursor(trace);
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase && event.id > 0) break;
    const bool inside_kernel = cursor.in_kernel();
    cursor.pass(event);
    if (event.kind != Event::Kind::call || inside_kernel) continue;
    const CallRecord& call = trace.calls[event.id];
    if (call.composite) continue;
    const int64_t bytes = new_bytes(trace, call);
    all_bytes += static_cast<double>(bytes);
    if (!is_one(call)) continue;
    auto [found, is_new] = rows.try_emplace(call.op);
    auto& [row, row_bytes] = found->second;
    if (is_new) {
      row.op = trace.text(call.op);
      row.module = trace.text(call.module);
      row.assumed = !call.unmodelled;
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
