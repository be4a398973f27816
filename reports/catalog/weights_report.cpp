#include "reports/catalog/weights_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/sections/execution_figures.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

constexpr size_t kMostNamesShown = 5;

std::string dtypes_table(const WeightsReport& report, size_t width) {
  TextTable table;
  table.column("dtype", TextTable::Align::left);
  for (const char* title : {"tensors", "elements", "bytes"}) table.column(title);
  for (const auto& [dtype, sum] : report.by_dtype())
    table.row({shown(dtype, kMostCharactersOfName), grouped(sum.tensors), grouped(sum.elements),
               human_bytes(sum.bytes)});
  return table.text(0, width);
}

std::string tensors_table(const WeightsReport& report, size_t width) {
  TextTable table;
  for (const char* title : {"tensor", "dtype", "shape"}) table.column(title, TextTable::Align::left);
  table.column("elements");
  for (const WeightsReport::Row& row : report.tensors)
    table.row({shown(row.name, 2 * kMostCharactersOfName), row.dtype, to_string(SizesView(row.shape)),
               grouped(row.elements)});
  return table.text(0, width);
}

std::string named(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("  {} {}: ", names.size(), what);
  for (size_t i = 0; i < names.size() && i < kMostNamesShown; ++i)
    text += (i > 0 ? "; " : "") + shown(names[i], 2 * kMostCharactersOfName);
  return text + (names.size() > kMostNamesShown ? " …\n" : "\n");
}

std::string comparison_text(const WeightsComparison& comparison) {
  std::string text = fmt::format("{} {}: {} parameters in the model, {} stored\n",
                                 comparison.agrees() ? "AGREES with" : "DIFFERS from", comparison.model,
                                 grouped(comparison.parameters), grouped(comparison.stored));
  for (const auto& names : comparison.tied) text += fmt::format("  tied: {}\n", fmt::join(names, " = "));
  text += named("of other shapes", comparison.shapes);
  text += named("parameters that are not stored under their names", comparison.missing);
  return text + named("stored tensors with names that the model does not have", comparison.unexpected);
}

nlohmann::ordered_json json_of(const WeightsReport::Sum& sum) {
  return {{"tensors", sum.tensors}, {"elements", sum.elements}, {"bytes", sum.bytes}};
}

}  // namespace

std::string weights_text(const WeightsReport& report, bool every, size_t width) {
  const WeightsReport::Sum all = report.all();
  std::string text = fmt::format("{}: {} tensors, {} elements, {} in {} file{}\n", report.path,
                                 grouped(all.tensors), grouped(all.elements), human_bytes(all.bytes),
                                 report.files.size(), report.files.size() == 1 ? "" : "s");
  for (const WeightsComparison& comparison : report.comparisons) text += comparison_text(comparison);
  if (!report.tensors.empty()) text += "\n" + dtypes_table(report, width);
  if (every && !report.tensors.empty()) text += "\n" + tensors_table(report, width);
  return text;
}

std::string weights_json(const WeightsReport& report) {
  using Json = nlohmann::ordered_json;
  Json by_dtype = Json::object(), tensors = Json::array(), comparisons = Json::array();
  for (const auto& [dtype, sum] : report.by_dtype()) by_dtype[dtype] = json_of(sum);
  for (const WeightsReport::Row& row : report.tensors)
    tensors.push_back({{"name", row.name},
                       {"dtype", row.dtype},
                       {"shape", std::vector<int64_t>(row.shape.begin(), row.shape.end())},
                       {"elements", row.elements},
                       {"bytes", row.bytes},
                       {"file", row.file}});
  for (const WeightsComparison& one : report.comparisons)
    comparisons.push_back({{"model", one.model},
                           {"agrees", one.agrees()},
                           {"parameters", one.parameters},
                           {"stored", one.stored},
                           {"tied", one.tied},
                           {"missing", one.missing},
                           {"unexpected", one.unexpected},
                           {"shapes", one.shapes}});
  const Json json = {{"schema", "metaprof.inspect"},
                     {"schema_version", 1},
                     {"path", report.path},
                     {"files", report.files},
                     {"total", json_of(report.all())},
                     {"by_dtype", by_dtype},
                     {"metadata", report.metadata},
                     {"warnings", report.warnings},
                     {"compared_with", comparisons},
                     {"tensors", tensors}};
  return json_text(json);
}

}  // namespace metaprof
