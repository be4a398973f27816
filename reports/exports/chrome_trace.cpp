#include "reports/exports/chrome_trace.h"

#include <fmt/format.h>

#include "core/append.h"
#include "core/formats/json_string.h"

namespace metaprof {
namespace {

// Tracks of the viewer.
int track(Slice::Kind kind) {
  switch (kind) {
    case Slice::Kind::phase: return 1;
    case Slice::Kind::module: return 2;
    default: return 3;
  }
}

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

}  // namespace

std::string chrome_trace(const Schedule& schedule, std::string_view title) {
  std::vector<std::string> names;
  for (const std::string& name : schedule.names) names.push_back(json_string(name));
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  append(out, R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})", json_string(title));
  constexpr const char* kTracks[] = {"phases", "modules", "operators"};
  for (int i = 0; i < 3; ++i)
    append(out,
           ",\n"
           R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
           i + 1, kTracks[i]);
  for (const Slice& slice : schedule.slices) {
    const std::string& name =
        slice.kind == Slice::Kind::module && slice.name == 0 ? "\"(root)\"" : names[slice.name];
    append(out,
           ",\n"
           R"({{"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"cat":"{}","args":{{)",
           track(slice.kind), microseconds(slice.begin), microseconds(slice.end - slice.begin), name,
           to_string(slice.phase));
    if (slice.kind == Slice::Kind::phase) {
      append(out, R"("step":{})", slice.step);
    } else {
      append(out, R"("module":{})", names[slice.module]);
      if (slice.flops.count > 0) append(out, R"(,"flops":{})", slice.flops.count);
      if (slice.moved.count > 0) append(out, R"(,"bytes_moved":{})", slice.moved.count);
    }
    out += "}}";
  }
  for (const Moment& moment : schedule.moments) {
    append(out,
           ",\n"
           R"({{"ph":"C","pid":1,"ts":{:.3f},"name":"live bytes","args":{{)",
           microseconds(moment.at));
    for (int i = 0; i < kCategories; ++i)
      append(out, R"({}"{}":{})", i == 0 ? "" : ",", to_string(static_cast<Category>(i)),
             moment.by_category[static_cast<size_t>(i)].count);
    out += "}}";
  }
  return out + "\n]}\n";
}

}  // namespace metaprof
