#include "reports/catalog/frameworks_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

std::string of(int equal, int all) { return all == 0 ? "" : fmt::format("{} of {}", equal, all); }

std::string percent(double share) {
  return share == 0 ? "0" : fmt::format("{:.2f} %", 100 * std::abs(share));
}

// "13.0" of 13000, "9.19.0" of 91900.
std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }
std::string cudnn_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string frameworks_text(const std::vector<FrameworkRow>& rows) {
  TextTable table;
  table.column("PyTorch", TextTable::Align::left);
  for (const char* title :
       {"CUDA", "cuDNN", "steps equal", "reserved equal", "worst peak", "operator cases equal"})
    table.column(title);
  for (const FrameworkRow& row : rows) {
    const ComparedVersion& compared = row.compared;
    table.row({std::string(compared.version), cuda_text(row.cuda), cudnn_text(row.cudnn),
               of(compared.equal, compared.steps), of(compared.reserved_equal, compared.steps),
               percent(compared.worst_allocated_error), of(compared.cases_equal, compared.cases)});
  }
  return table.text();
}

std::string frameworks_json(const std::vector<FrameworkRow>& rows) {
  using Json = nlohmann::ordered_json;
  Json frameworks = Json::array();
  for (const FrameworkRow& row : rows) {
    const ComparedVersion& compared = row.compared;
    frameworks.push_back({{"version", compared.version},
                          {"cuda", cuda_text(row.cuda)},
                          {"cudnn", cudnn_text(row.cudnn)},
                          {"steps", compared.steps},
                          {"steps_equal", compared.equal},
                          {"reserved_equal", compared.reserved_equal},
                          {"worst_allocated_error", compared.worst_allocated_error},
                          {"cases", compared.cases},
                          {"cases_equal", compared.cases_equal}});
  }
  const Json newest = rows.empty() ? Json(nullptr) : Json(rows.back().compared.version);
  const Json json = {{"schema", "metaprof.frameworks"},
                     {"schema_version", 1},
                     {"newest", newest},
                     {"frameworks", frameworks}};
  return json_text(json);
}

}  // namespace metaprof
