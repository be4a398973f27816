#include "reports/catalog/operators_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/formats/display.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr size_t kMostModels = 3;

std::string dumped(const Json& json) { return json_text(json); }

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
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
  table.column("of all calls, %");
  table.column("models");
  table.column("among them", Align::left);
  const int64_t calls = coverage.calls();
  for (const CoverageRow& row : coverage.operators) {
    std::vector<std::string> some(
        row.models.begin(), row.models.begin() + static_cast<long>(std::min(kMostModels, row.models.size())));
    for (std::string& model : some) model = shown(model, kMostCharactersOfName);
    table.row({shown(row.op, kMostCharactersOfName), row.known ? "yes" : "NO", fmt::format("{}", row.calls),
               fmt::format("{:.2f}", 100 * share(row.calls, calls)), fmt::format("{}", row.models.size()),
               joined(some, ", ")});
  }
  return table.text() + fmt::format("known: {} of {} operators, {} of {} calls, all of {} of {} models\n",
                                    coverage.known_operators(), coverage.operators.size(),
                                    coverage.known_calls(), calls, coverage.models_known, coverage.models);
}

std::string coverage_json(const Coverage& coverage) {
  const int64_t calls = coverage.calls();
  Json operators = Json::array();
  for (const CoverageRow& row : coverage.operators)
    operators.push_back({{"op", row.op},
                         {"known", row.known},
                         {"calls", row.calls},
                         {"share_of_calls", share(row.calls, calls)},
                         {"models", row.models}});
  return dumped({{"schema", "metaprof.ops_coverage"},
                 {"schema_version", 1},
                 {"models", coverage.models},
                 {"models_known", coverage.models_known},
                 {"calls", calls},
                 {"calls_known", coverage.known_calls()},
                 {"operators", operators}});
}

}  // namespace metaprof
