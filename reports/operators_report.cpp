#include "reports/operators_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/format.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr size_t kMostCharacters = 60;
constexpr size_t kMostModels = 3;

std::string dumped(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

}  // namespace

std::string operators_text(const std::vector<OperatorRow>& rows) {
  TextTable table;
  for (const char* title : {"operator", "what it does", "derivative of", "kernels", "FLOPs", "facts"})
    table.column(title, Align::left);
  for (const OperatorRow& row : rows) {
    const std::string derivative = row.composite ? "by its calls" : joined(row.derivatives, "; ");
    table.row({row.name, row.summary, derivative.empty() ? "-" : derivative, joined(row.kernels, ", "),
               row.flops, joined(row.facts, ", ")});
  }
  return table.text() + fmt::format("{} operators\n", rows.size());
}

std::string operators_json(const std::vector<OperatorRow>& rows) {
  Json operators = Json::array();
  for (const OperatorRow& row : rows) {
    operators.push_back({{"name", row.name},
                         {"schema", row.schema},
                         {"summary", row.summary},
                         {"composite", row.composite},
                         {"node", row.node.empty() ? Json(nullptr) : Json(row.node)},
                         {"derivatives", row.derivatives},
                         {"kernels", row.kernels},
                         {"flops", row.flops},
                         {"facts", row.facts}});
  }
  return dumped({{"schema", "metaprof.ops"}, {"schema_version", 1}, {"operators", operators}});
}

std::string coverage_text(const Coverage& coverage) {
  TextTable table;
  table.column("operator", Align::left);
  table.column("known", Align::left);
  table.column("calls");
  table.column("models");
  table.column("among them", Align::left);
  int64_t known = 0, calls = 0, known_calls = 0;
  for (const CoverageRow& row : coverage.operators) {
    std::vector<std::string> some(
        row.models.begin(), row.models.begin() + static_cast<long>(std::min(kMostModels, row.models.size())));
    for (std::string& model : some) model = shown(model, kMostCharacters);
    table.row({shown(row.op, kMostCharacters), row.known ? "yes" : "NO", fmt::format("{}", row.calls),
               fmt::format("{}", row.models.size()), joined(some, ", ")});
    known += row.known;
    calls += row.calls;
    known_calls += row.known ? row.calls : 0;
  }
  return table.text() + fmt::format("known: {} of {} operators, {} of {} calls, all of {} of {} models\n",
                                    known, coverage.operators.size(), known_calls, calls,
                                    coverage.models_known, coverage.models);
}

std::string coverage_json(const Coverage& coverage) {
  Json operators = Json::array();
  for (const CoverageRow& row : coverage.operators)
    operators.push_back({{"op", row.op}, {"known", row.known}, {"calls", row.calls}, {"models", row.models}});
  return dumped({{"schema", "metaprof.ops_coverage"},
                 {"schema_version", 1},
                 {"models", coverage.models},
                 {"models_known", coverage.models_known},
                 {"operators", operators}});
}

}  // namespace metaprof
