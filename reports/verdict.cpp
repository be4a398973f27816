#include <fmt/format.h>

#include "reports/format.h"
#include "reports/profile_report.h"

namespace metaprof {

Verdict verdict_of(const ProfileReport& report) {
  const Phases& phases = report.memory.phases;
  Verdict verdict;
  verdict.outside = report.outside;
  verdict.kept_free = {static_cast<int64_t>(static_cast<double>(report.device_memory.count) * report.margin)};
  verdict.memory = report.device_memory;
  if (!phases.out_of_memory) {
    verdict.reserved = {phases.peak.reserved_bytes.peak};
    verdict.fits = verdict.left().count >= 0;
  } else {
    verdict.at_least = !report.needed_memory;
    verdict.reserved = report.needed_memory.value_or(report.device_memory);
  }
  return verdict;
}

std::string verdict_line(const ProfileReport& report) {
  const Verdict verdict = verdict_of(report);
  std::string text =
      fmt::format("{} {}: needs {}{}", verdict.fits ? "FITS" : "DOES NOT FIT", shown(report.device, 60),
                  verdict.at_least ? "more than " : "", human_bytes(verdict.reserved.count));
  if (verdict.outside.count > 0)
    text += fmt::format(" + {} outside the allocator", human_bytes(verdict.outside.count));
  text += fmt::format(" of {}", human_bytes(verdict.memory.count));
  text += fmt::format(", margin {:g} %", 100 * report.margin);
  if (verdict.kept_free.count > 0) text += fmt::format(" ({})", human_bytes(verdict.kept_free.count));
  const int64_t left = verdict.left().count;
  if (verdict.fits) return text + fmt::format("; {} stay free", human_bytes(left));
  return left < 0 && !verdict.at_least ? text + fmt::format("; {} are missing", human_bytes(-left)) : text;
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

std::string outside_note(const ProfileReport& report) {
  if (report.outside_source.empty()) return "";
  return fmt::format(
      "outside the allocator {} to {} are reported for such cards, and the most is counted "
      "(docs/devices.md); "
      "--context SIZE says what yours takes",
      human_bytes(report.outside_least.count), human_bytes(report.outside.count));
}

}  // namespace metaprof
