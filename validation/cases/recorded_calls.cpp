#include "validation/cases/recorded_calls.h"

#include <algorithm>

#include "meta/ops/all.h"

namespace metaprof {
namespace {

// "Optimizer.step#SGD.step": a region that Python names, no operator. Its calls are the program's.
bool is_region(const LogLine& line) {
  return line.kind == LogLine::Kind::begin && line.name.find('#') != line.name.npos;
}

size_t end_of(const std::vector<LogLine>& lines, size_t begin) {
  size_t end = begin + 1;
  while (lines[end].kind != LogLine::Kind::end || lines[end].depth != lines[begin].depth) ++end;
  return end;
}

bool calls_itself(const std::vector<LogLine>& lines, size_t begin, size_t end) {
  for (size_t i = begin + 1; i < end; ++i)
    if (lines[i].kind == LogLine::Kind::begin && lines[i].depth == lines[begin].depth + 1 &&
        lines[i].name == lines[begin].name)
      return true;
  return false;
}

bool has_device_tensor(std::string_view text) {
  for (size_t at = text.find('@'); at != text.npos; at = text.find('@', at + 1))
    if (at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9') return true;
  return false;
}

// The first tensor is on the host, another is not.
bool goes_to_host(std::string_view text) {
  const size_t first = text.find('@');
  if (first == text.npos || first + 1 >= text.size() || text[first + 1] != 'h') return false;
  const size_t space = text.find(' ', first);
  return space != text.npos && has_device_tensor(text.substr(space));
}

// Operators whose host code waits for the device, and what writes on the host what the device has.
bool reads(const LogLine& line) {
  if (line.kind != LogLine::Kind::begin) return false;
  const Operator* op = standard_registry().find(line.name);
  if (!op) return false;
  if (op->writes && goes_to_host(line.text)) return true;
  return op->record.facts.host_reads && has_device_tensor(line.text);
}

}  // namespace

std::vector<RecordedStep> recorded_steps(const std::vector<LogLine>& forward) {
  std::vector<RecordedStep> steps;
  for (size_t i = 0; i < forward.size(); ++i) {
    const LogLine& line = forward[i];
    if (line.kind == LogLine::Kind::give_back) steps.push_back({i, i});
    if (line.kind != LogLine::Kind::begin || is_region(line)) continue;
    const size_t end = end_of(forward, i);
    steps.push_back({i, end, true, calls_itself(forward, i, end)});
    i = end;
  }
  return steps;
}

std::optional<DType> autocast_dtype(const RecordedCase& recorded, const std::vector<RecordedStep>& steps) {
  const bool any = std::any_of(steps.begin(), steps.end(), [](const RecordedStep& s) { return s.autocast; });
  if (!any) return {};
  // What the first cast to a lower precision inside such a call says, else what the case is called after.
  for (const RecordedStep& step : steps) {
    if (!step.autocast) continue;
    for (size_t i = step.begin; i < step.end; ++i) {
      const LogLine& line = recorded.forward[i];
      if (line.kind != LogLine::Kind::begin || line.name != "aten::to.dtype") continue;
      const std::vector<RecordedValue> values = parse_values(line.text);
      if (values.size() < 2 || values[1].kind != RecordedValue::Kind::integer) continue;
      const auto dtype = dtype_numbered(values[1].integer);
      if (dtype && is_reduced_floating(*dtype)) return dtype;
    }
  }
  return dtype_named(recorded.dtype).value_or(DType::bf16);
}

size_t first_reading_line(const std::vector<LogLine>& lines) {
  size_t i = 0;
  while (i < lines.size() && !reads(lines[i])) ++i;
  return i;
}

}  // namespace metaprof
