#include "reports/checks/cases_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/tables/json_text.h"

namespace metaprof {

namespace {

using What = CaseDifference::What;

std::string row(const std::string& name, const CaseCounts& counts) {
  std::string text = fmt::format("{:<44} {:>6} {:>8}", name, counts.total, counts.claimed);
  for (int64_t equal : counts.equal) text += fmt::format(" {:>8}", equal);
  return text + "\n";
}

std::string percent(int64_t part, int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.2f}%", 100.0 * double(part) / double(whole));
}

int64_t unequal(const CaseCounts& counts) {
  int64_t sum = 0;
  for (int64_t equal : counts.equal) sum += counts.claimed - equal;
  return sum;
}

std::string cut_short_text(const CaseCounts& totals) {
  if (totals.cut_short == 0) return {};
  return fmt::format(
      "\n{} cases read device memory, which is 0 in recordings: compared up to that ({} equal) and not "
      "counted\n",
      totals.cut_short, totals.cut_equal);
}

std::string missing_text(const CaseSummary& summary) {
  if (summary.blocked_by.empty()) return {};
  std::string text = fmt::format("\n{:<60} {:>8} {:>14}\n", "without a record", "cases", "alone blocking");
  std::vector<std::pair<std::string, int64_t>> missing(summary.blocked_by.begin(), summary.blocked_by.end());
  std::stable_sort(missing.begin(), missing.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, cases] : missing) {
    auto alone = summary.only_blocked_by.find(name);
    text += fmt::format("{:<60} {:>8} {:>14}\n", name, cases,
                        alone == summary.only_blocked_by.end() ? 0 : alone->second);
  }
  return text;
}

std::string reasons_text(const CaseSummary& summary) {
  std::map<std::string, int64_t> cases;
  for (const CaseResult& result : summary.differing) {
    ++cases[result.reason.empty() ? "without a known reason" : result.reason];
  }
  std::string text = cases.empty() ? "" : "\ncases that differ, by reason\n";
  for (const auto& [reason, count] : cases) text += fmt::format("{:>6}  {}\n", count, reason);
  return text;
}

// Operators whose allocations differ, with the bytes that were requested too much (+) or too little.
std::string bytes_text(const CaseSummary& summary) {
  struct Sum {
    int64_t cases = 0, bytes = 0;
  };
  std::map<std::string, std::array<Sum, 2>> by_op;  // forward, backward
  for (const CaseResult& result : summary.differing)
    for (const CaseDifference& d : result.differences) {
      if (d.what != What::forward_events && d.what != What::backward_events) continue;
      Sum& sum = by_op[result.op][d.what == What::backward_events];
      ++sum.cases;
      sum.bytes += d.bytes;
    }
  if (by_op.empty()) return {};
  std::string text = fmt::format("\n{:<44} {:>8} {:>16} {:>8} {:>16}\n", "allocations that differ", "forward",
                                 "bytes", "backward", "bytes");
  for (const auto& [op, sums] : by_op)
    text += fmt::format("{:<44} {:>8} {:>+16} {:>8} {:>+16}\n", op, sums[0].cases, sums[0].bytes,
                        sums[1].cases, sums[1].bytes);
  return text;
}

nlohmann::ordered_json counts_json(const CaseCounts& counts) {
  nlohmann::ordered_json json;
  json["total"] = counts.total;
  json["claimed"] = counts.claimed;
  for (int what = 0; what < kWhats; ++what)
    json[std::string(to_string(static_cast<CaseDifference::What>(what))) + "_equal"] =
        counts.equal[size_t(what)];
  return json;
}

}  // namespace

std::string cases_text(const CaseSummary& summary) {
  std::vector<std::pair<std::string, CaseCounts>> rows(summary.by_op.begin(), summary.by_op.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(unequal(a.second), a.second.total - a.second.claimed) >
           std::pair(unequal(b.second), b.second.total - b.second.claimed);
  });
  std::string text = fmt::format("{:<44} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "operator", "cases",
                                 "claimed", "outputs", "saved", "forward", "backward", "grads");
  for (const auto& [name, counts] : rows)
    if (counts.total > 0) text += row(name, counts);
  text +=
      missing_text(summary) + reasons_text(summary) + bytes_text(summary) + cut_short_text(summary.totals);
  text += "\n" + row("all", summary.totals);
  text += fmt::format("{:<44} {:>6} {:>8}", "", "", percent(summary.totals.claimed, summary.totals.total));
  for (int64_t equal : summary.totals.equal)
    text += fmt::format(" {:>8}", percent(equal, summary.totals.claimed));
  return text + "\n";
}

std::string cases_differences_text(const CaseSummary& summary) {
  std::string text;
  for (const CaseResult& result : summary.differing) {
    text += result.reason.empty() ? result.name + "\n" : fmt::format("{} ({})\n", result.name, result.reason);
    if (!result.forward_error.empty()) text += "  forward         error    " + result.forward_error + "\n";
    if (!result.backward_error.empty()) text += "  backward        error    " + result.backward_error + "\n";
    for (const CaseDifference& d : result.differences)
      text += fmt::format("  {:<15} expected {}\n  {:<15} got      {}\n", to_string(d.what), d.expected, "",
                          d.got);
  }
  return text;
}

std::string cases_json(const CaseSummary& summary) {
  nlohmann::ordered_json json;
  json["schema"] = "metaprof.ops_replay";
  json["schema_version"] = 1;
  json.update(counts_json(summary.totals));
  json["cut_short"] = {{"cases", summary.totals.cut_short}, {"equal", summary.totals.cut_equal}};
  json["by_op"] = nlohmann::ordered_json::object();
  for (const auto& [name, counts] : summary.by_op) json["by_op"][name] = counts_json(counts);
  json["differences"] = nlohmann::ordered_json::array();
  auto add = [&](const CaseResult& result, std::string_view what, std::string_view expected,
                 std::string_view got) -> nlohmann::ordered_json& {
    json["differences"].push_back(
        {{"case", result.name}, {"what", what}, {"expected", expected}, {"got", got}});
    auto& row = json["differences"].back();
    if (!result.reason.empty()) row["reason"] = result.reason;
    return row;
  };
  for (const CaseResult& result : summary.differing) {
    if (!result.forward_error.empty()) add(result, "forward_error", "none", result.forward_error);
    if (!result.backward_error.empty()) add(result, "backward_error", "none", result.backward_error);
    for (const CaseDifference& d : result.differences) {
      auto& row = add(result, to_string(d.what), d.expected, d.got);
      if (d.what == What::forward_events || d.what == What::backward_events) row["bytes"] = d.bytes;
    }
  }
  return json_text(json);
}

}  // namespace metaprof
