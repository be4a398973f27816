// A profile's tables as Markdown and CSV.

#include <fmt/format.h>

#include "core/formats/display.h"
#include "reports/profile/module_table.h"
#include "reports/profile/node_table.h"
#include "reports/profile/profile_report.h"
#include "reports/sections/verdict.h"

namespace metaprof {
namespace {

FigureTable table_of(const ProfileReport& report, const TextOptions& options, bool whole_paths) {
  return report.nodes ? node_table(report, options) : module_table(report, options, whole_paths).table;
}

FigureTable category_figures(const PeakMoment& peak) {
  FigureTable table;
  table.words.emplace_back("category");
  table.columns.push_back({"live", "live", Measure::bytes});
  for (int i = 0; i < kCategories; ++i) {
    const int64_t bytes = peak.by_category[static_cast<size_t>(i)].count;
    if (bytes > 0) table.rows.push_back({{std::string(to_string(static_cast<Category>(i)))}, {bytes}});
  }
  return table;
}

}  // namespace

std::string profile_markdown(const ProfileReport& report, const TextOptions& options) {
  const AllocatorNumbers& peak = report.memory.phases.peak;
  const auto cell = [](const std::string& text) { return markdown_cell(shown(text, 80)); };
  std::string text = fmt::format("## {} on {}\n\n", cell(report.model), cell(report.device_title));
  text +=
      fmt::format("{} **{}**\n\n", verdict_of(report).fits ? "✅" : "❌", markdown_cell(verdict_line(report)));
  for (const std::string& line : {inputs_text(report.inputs), options_text(report)})
    if (!line.empty()) text += markdown_cell(line) + "\n\n";
  text += fmt::format("Peak: {} allocated, {} reserved.\n\n", human_bytes(peak.allocated_bytes.peak),
                      human_bytes(peak.reserved_bytes.peak));
  text += "### Live bytes at the peak\n\n";
  text += to_string(category_figures(report.memory.peak), TableForm::markdown);
  text += fmt::format("\n<details><summary>{}</summary>\n\n", report.nodes ? "Nodes" : "Modules");
  text += to_string(table_of(report, options, true), TableForm::markdown);
  return text + "\n</details>\n";
}

std::string profile_csv(const ProfileReport& report, const TextOptions& options) {
  TextOptions all = options;
  all.depth = -1;
  return to_string(table_of(report, all, true), TableForm::csv);
}

}  // namespace metaprof
