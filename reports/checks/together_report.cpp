#include "reports/checks/together_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

std::string verdict(const TogetherReport& report) {
  const std::string all = human_bytes(report.takes().count), usable = human_bytes(report.usable().count);
  if (report.fits())
    return fmt::format("FITS {}: together they take {} of {}; {} stay free", report.device, all, usable,
                       human_bytes((report.usable() - report.takes()).count));
  if (report.fits_with_limits())
    return fmt::format("FITS {} if each is limited: together they take {} of {}, and run from {}",
                       report.device, all, usable, human_bytes(report.least().count));
  return fmt::format("DOES NOT FIT {}: together they run from {}, and there are {}; {} are missing",
                     report.device, human_bytes(report.least().count), usable,
                     human_bytes((report.least() - report.usable()).count));
}

}  // namespace

std::string together_text(const TogetherReport& report, size_t width) {
  TextTable table;
  table.column("report", TextTable::Align::left);
  table.column("of", TextTable::Align::left);
  for (const char* title : {"reserved", "outside", "takes", "runs from"}) table.column(title);
  if (report.fits_with_limits()) table.column("limit");
  const auto human = [](Bytes bytes) { return human_bytes(bytes.count); };
  for (const TogetherRow& row : report.rows) {
    std::vector<std::string> cells = {row.file,
                                      shown(row.what, kMostCharactersOfName),
                                      human(row.reserved),
                                      human(row.outside),
                                      human(row.takes()),
                                      human(row.least())};
    if (report.fits_with_limits()) cells.push_back(human(row.limit));
    table.row(std::move(cells));
  }
  std::string text = verdict(report) + "\n" + report.title + "\n\n" + table.text(0, width);
  if (report.fits_with_limits()) {
    text += "\nA line for each program, before it makes its first tensor:\n";
    for (const TogetherRow& row : report.rows)
      text +=
          fmt::format("  torch.cuda.set_per_process_memory_fraction({:.4f})  # {}\n", row.fraction, row.file);
  }
  text +=
      "\nNote: each process has a CUDA context of its own. What shares contexts (MPS) takes less, and is not "
      "followed; give a "
      "slice of a card (MIG) as --memory.\n";
  for (const std::string& note : report.notes) text += "Note: " + note + "\n";
  return text;
}

std::string together_json(const TogetherReport& report) {
  Json rows = Json::array();
  for (const TogetherRow& row : report.rows)
    rows.push_back({{"report", row.file},
                    {"of", row.what},
                    {"reserved_bytes", row.reserved.count},
                    {"runs_from_bytes", row.runs_from ? Json(row.runs_from->count) : Json(nullptr)},
                    {"outside_bytes", row.outside.count},
                    {"request_bytes", (row.limit + row.outside).count},
                    {"limit_bytes", row.limit.count},
                    {"memory_fraction", row.fraction}});
  return json_text({{"schema", "metaprof.together"},
                    {"schema_version", 1},
                    {"device", report.device},
                    {"memory_bytes", report.memory.count},
                    {"margin", report.margin},
                    {"fits", report.fits() || report.fits_with_limits()},
                    {"needs_limits", report.fits_with_limits()},
                    {"takes_bytes", report.takes().count},
                    {"least_bytes", report.least().count},
                    {"rows", rows},
                    {"notes", report.notes}});
}

}  // namespace metaprof
