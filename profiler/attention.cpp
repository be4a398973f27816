#include "profiler/attention.h"

#include <algorithm>
#include <string_view>

#include "core/shape.h"

namespace metaprof {
namespace {

std::string tensor_text(const Trace& trace, const TensorRecord& tensor) {
  return std::string(short_name(tensor.dtype)) + to_string(trace.shape(tensor));
}

constexpr std::string_view kMark = "attention::";

bool is_of_first_forward(const Trace& trace, const Event& event) {
  return event.kind == Event::Kind::call && trace.calls[event.id].phase == Phase::forward;
}

void add(std::vector<AttentionRow>& rows, AttentionRow row, const Trace& trace, const CallRecord& call) {
  auto same = std::ranges::find_if(rows, [&](const AttentionRow& other) {
    return other.implementation == row.implementation && other.refused == row.refused;
  });
  if (same == rows.end()) {
    if (call.inputs >= 2) {
      row.query = tensor_text(trace, trace.tensors[call.first_tensor]);
      row.key = tensor_text(trace, trace.tensors[call.first_tensor + 1]);
    }
    same = rows.insert(rows.end(), std::move(row));
  }
  const std::string module(trace.text(call.module));
  if (std::ranges::find(same->modules, module) == same->modules.end()) same->modules.push_back(module);
  ++same->calls;
}

}  // namespace

// Behind the call of the operator stand calls that only say something: each refused implementation, with the reason as
// a call inside it, then the one that was taken, with nothing inside.
std::vector<AttentionRow> attention_rows(const Trace& trace) {
  std::vector<AttentionRow> rows;
  AttentionRow row;
  const CallRecord* asked = nullptr;  // the last call that is none of those
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Event::Kind::phase && (event.id > 0 || event.value > 0)) break;
    if (!is_of_first_forward(trace, event)) continue;
    const std::string_view op = trace.text(trace.calls[event.id].op);
    if (!op.starts_with(kMark)) {
      asked = &trace.calls[event.id];
      continue;
    }
    const std::string implementation(op.substr(kMark.size()));
    const Event& next = trace.events[i + 1];  // at least the end of this call
    if (next.kind == Event::Kind::call) {
      row.refused.emplace_back(implementation, trace.text(trace.calls[next.id].op));
      ++i;
    } else if (asked) {
      row.implementation = implementation;
      add(rows, std::move(row), trace, *asked);
      row = {};
    }
  }
  return rows;
}

}  // namespace metaprof
