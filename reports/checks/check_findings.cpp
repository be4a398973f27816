#include "reports/checks/check_findings.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/formats/display.h"

namespace metaprof {
namespace {

enum Rule : size_t { kAllocated, kRequested, kReserved, kGrowth, kOutOfMemory = kGrowth + 5, kAnotherModel };

constexpr CheckRule kRules[] = {
    {"peak-allocated-error", "The estimated peak of allocated bytes is not the measured one."},
    {"peak-requested-error", "The estimated peak of requested bytes is not the measured one."},
    {"peak-reserved-error", "The estimated peak of reserved bytes is not the measured one."},
    {"peak-allocated-growth", "The peak of allocated bytes is larger than that of the baseline."},
    {"peak-requested-growth", "The peak of requested bytes is larger than that of the baseline."},
    {"peak-reserved-growth", "The peak of reserved bytes is larger than that of the baseline."},
    {"saved-growth", "More bytes are saved for backward than in the baseline."},
    {"flops-growth", "A step has more FLOPs than in the baseline."},
    {"out-of-memory", "Memory runs out, and does not in the baseline."},
    {"another-model", "The baseline is of another model."}};

Rule rule_of(const CheckResult& result, const CheckRow* row) {
  if (row == &result.peak_reserved) return kReserved;
  return row == &result.peak_allocated ? kAllocated : kRequested;
}

std::string_view title_of(Rule rule) {
  return rule == kAllocated   ? "peak of allocated bytes"
         : rule == kRequested ? "peak of requested bytes"
                              : "peak of reserved bytes";
}

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:+.3f} %", 100 * *share) : "no share of 0";
}

std::string figure_text(const BaselineRow& row, int64_t value) {
  if (row.figure != BaselineRow::Figure::flops) return human_bytes(value);
  const Unit unit = unit_for_flops(value);
  return fmt::format("{} {}", in_unit(value, unit), unit.name);
}

std::string module_text(const std::string& path) { return shown(path, 200); }

}  // namespace

std::span<const CheckRule> check_rules() { return kRules; }

std::string_view title_of(BaselineRow::Figure figure) {
  switch (figure) {
    case BaselineRow::Figure::allocated: return "peak of allocated bytes";
    case BaselineRow::Figure::requested: return "peak of requested bytes";
    case BaselineRow::Figure::reserved: return "peak of reserved bytes";
    case BaselineRow::Figure::saved: return "bytes saved for backward";
    case BaselineRow::Figure::flops: return "FLOPs";
  }
  return "";
}

std::string difference_text(const EventMismatch& difference) {
  return fmt::format("line {}: recorded {}; estimated {}", difference.line, difference.recorded,
                     difference.estimated);
}

std::string changes_text(const BaselineResult& result) {
  std::string text;
  const auto add = [&](const char* what, const std::optional<BytesChange>& change) {
    if (!change) return;
    text +=
        fmt::format("{}{} {}: {:+} B ({} → {})", text.empty() ? "" : "; ", what, module_text(change->name),
                    change->after - change->before, change->before, change->after);
  };
  add("saved in", result.saved_module);
  add("saved by", result.saved_node);
  add("at the peak", result.peak_category);
  if (!text.empty() && !result.peak_op.empty())
    text += fmt::format("; the peak is in {}{}{}", module_text(result.peak_op),
                        result.peak_module.empty() ? "" : " of ", module_text(result.peak_module));
  return text;
}

std::vector<CheckFinding> findings_of(const CheckResult& result, double tolerance) {
  std::vector<CheckFinding> findings;
  for (const CheckRow* row : result.decisive()) {
    if (!row->exceeds(tolerance)) continue;
    const Rule rule = rule_of(result, row);
    CheckFinding finding{
        .rule = rule, .message = {}, .why = {}, .file = result.recording, .log = {}, .source = {}};
    finding.message = fmt::format(
        "{}: {}: {} recorded, {}, tolerance {:g} %", result.id, title_of(rule), *row->recorded,
        row->estimated ? fmt::format("{} estimated: {}", *row->estimated, share_text(row->error()))
                       : "nothing estimated",
        100 * tolerance);
    if (const auto& difference = result.first_difference) {
      finding.message += "; the first difference is in " + difference_text(*difference);
      finding.log = result.log;
      finding.line = difference->line;
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<CheckFinding> findings_of(const BaselineResult& result, double tolerance) {
  std::vector<CheckFinding> findings;
  const std::string changes = changes_text(result);
  const auto add = [&](size_t rule, std::string message) {
    findings.push_back({.rule = rule,
                        .message = std::move(message),
                        .why = findings.empty() ? changes : "",
                        .file = result.file,
                        .log = {},
                        .source = result.source_file,
                        .source_line = result.source_line});
  };
  if (result.of_another_model())
    add(kAnotherModel,
        fmt::format("{}: the baseline is of {}, this is {}; --accept makes a baseline of this one",
                    result.file, shown(result.model_before, kMostCharactersOfName),
                    shown(result.model_after, kMostCharactersOfName)));
  for (const BaselineRow& row : result.rows)
    if (row.grew_above(tolerance))
      add(kGrowth + static_cast<size_t>(row.figure),
          fmt::format("{}: {} {} → {}: {}, tolerance {:g} %", result.file, title_of(row.figure),
                      figure_text(row, row.before), figure_text(row, row.after), share_text(row.growth()),
                      100 * tolerance));
  if (result.out_of_memory_since) add(kOutOfMemory, result.file + ": memory runs out, and did not then");
  return findings;
}

}  // namespace metaprof
