#include "reports/checks/rerun_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/tables/json_text.h"

namespace metaprof {

using Json = nlohmann::ordered_json;

std::string rerun_text(const RerunResult& result) {
  std::string text;
  for (const RerunDifference& d : result.differences) {
    text += fmt::format("{}:{}: {}: recorded {}, got {}\n", d.file, d.line, d.what, d.expected, d.got);
  }
  return text + fmt::format("{} of {} recordings equal ({} requests, {} phases)\n", result.equal,
                            result.recordings, result.requests, result.phases);
}

std::string rerun_json(const RerunResult& result) {
  Json differences = Json::array();
  for (const RerunDifference& d : result.differences) {
    differences.push_back(
        {{"file", d.file}, {"line", d.line}, {"what", d.what}, {"expected", d.expected}, {"got", d.got}});
  }
  const Json report = {{"schema", "metaprof.allocator_replay"},
                       {"schema_version", 1},
                       {"recordings", result.recordings},
                       {"equal", result.equal},
                       {"requests", result.requests},
                       {"phases", result.phases},
                       {"phases_ended_early", result.phases_ended_early},
                       {"differences", differences}};
  return json_text(report);
}

}  // namespace metaprof
