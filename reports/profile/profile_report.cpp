#include "reports/profile/profile_report.h"

#include <fmt/format.h>

#include "core/formats/display.h"
#include "reports/sections/verdict.h"

namespace metaprof {

std::string verdict_line(const ProfileReport& report) {
  const std::string line = verdict_line(verdict_of(report));
  return report.fix.empty() ? line : line + ". Cheapest fix: " + report.fix;
}

std::string precision_note(const ProfileReport& report) {
  if (report.parameter_types.empty()) return "";
  for (const auto& [name, value] : report.options)
    if (name == "precision" && to_text(value) == "fp32")
      return fmt::format(
          "the export's parameters are {}, and --precision fp32 leaves them so; export the model in fp32 for "
          "figures of fp32",
          report.parameter_types);
  return "";
}

std::string guessed_note(const ProfileReport& report) {
  if (report.guessed.empty()) return "";
  int64_t tensors = 0;
  Bytes bytes;
  std::string why;
  for (const GuessedRow& row : report.guessed) {
    tensors += row.tensors;
    bytes += row.bytes;
    why += fmt::format("{}{} ({}, {})", why.empty() ? "" : ", ", row.why, row.tensors,
                       human_bytes(row.bytes.count));
  }
  return fmt::format(
      "when tensors of the forward go is guessed where the export does not tell it: {} of them, {} together: "
      "{}; "
      "metaprof run takes it from a run (docs/explanation/lifetimes.md)",
      tensors, human_bytes(bytes.count), why);
}

std::string outside_note(const ProfileReport& report) {
  if (report.outside_source.empty()) return "";
  return fmt::format(
      "outside the allocator {} to {} are reported for such cards, and the most is counted "
      "(docs/reference/devices.md); "
      "--context SIZE says what yours takes",
      human_bytes(report.outside_least.count), human_bytes(report.outside.count));
}

}  // namespace metaprof
