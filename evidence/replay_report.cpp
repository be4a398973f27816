#include "evidence/replay_report.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/error.h"
#include "evidence/reasons.h"

namespace metaprof {

void ReplayCounts::add(const CaseResult& result) {
  ++total;
  if (!result.claimed()) return;
  ++claimed;
  for (int what = 0; what < kWhats; ++what)
    equal[size_t(what)] += result.equal(static_cast<CaseDifference::What>(what));
}

void ReplayReport::add(CaseResult result) {
  totals_.add(result);
  by_op_[result.op].add(result);
  for (const std::string& name : result.missing) {
    ++blocked_by_[name];
    if (result.missing.size() == 1) ++only_blocked_by_[name];
  }
  if (!result.all_equal()) differing_.push_back(std::move(result));
}

namespace {

using What = CaseDifference::What;

std::string row(const std::string& name, const ReplayCounts& counts) {
  std::string text = fmt::format("{:<44} {:>6} {:>8}", name, counts.total, counts.claimed);
  for (int64_t equal : counts.equal) text += fmt::format(" {:>8}", equal);
  return text + "\n";
}

std::string percent(int64_t part, int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.2f}%", 100.0 * double(part) / double(whole));
}

int64_t unequal(const ReplayCounts& counts) {
  int64_t sum = 0;
  for (int64_t equal : counts.equal) sum += counts.claimed - equal;
  return sum;
}

}  // namespace

std::string ReplayReport::text() const {
  std::vector<std::pair<std::string, ReplayCounts>> rows(by_op_.begin(), by_op_.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(unequal(a.second), a.second.total - a.second.claimed) >
           std::pair(unequal(b.second), b.second.total - b.second.claimed);
  });
  std::string text = fmt::format("{:<44} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "operator", "cases",
                                 "claimed", "outputs", "saved", "forward", "backward", "grads");
  for (const auto& [name, counts] : rows) text += row(name, counts);
  text += missing_text() + reasons_text() + bytes_text();
  text += "\n" + row("all", totals_);
  text += fmt::format("{:<44} {:>6} {:>8}", "", "", percent(totals_.claimed, totals_.total));
  for (int64_t equal : totals_.equal) text += fmt::format(" {:>8}", percent(equal, totals_.claimed));
  return text + "\n";
}

std::string ReplayReport::missing_text() const {
  if (blocked_by_.empty()) return {};
  std::string text = fmt::format("\n{:<60} {:>8} {:>14}\n", "without a record", "cases", "alone blocking");
  std::vector<std::pair<std::string, int64_t>> missing(blocked_by_.begin(), blocked_by_.end());
  std::stable_sort(missing.begin(), missing.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, cases] : missing) {
    auto alone = only_blocked_by_.find(name);
    text += fmt::format("{:<60} {:>8} {:>14}\n", name, cases,
                        alone == only_blocked_by_.end() ? 0 : alone->second);
  }
  return text;
}

std::string ReplayReport::reasons_text() const {
  std::map<std::string_view, int64_t> cases;
  for (const CaseResult& result : differing_) {
    const KnownDifference* known = reason_for(result);
    ++cases[known ? known->reason : "without a known reason"];
  }
  std::string text = cases.empty() ? "" : "\ncases that differ, by reason\n";
  for (const auto& [reason, count] : cases) text += fmt::format("{:>6}  {}\n", count, reason);
  return text;
}

// Operators whose allocations differ, with the bytes that were requested too much (+) or too little.
std::string ReplayReport::bytes_text() const {
  struct Sum {
    int64_t cases = 0, bytes = 0;
  };
  std::map<std::string, std::array<Sum, 2>> by_op;  // forward, backward
  for (const CaseResult& result : differing_)
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

std::string ReplayReport::differences_text() const {
  std::string text;
  for (const CaseResult& result : differing_) {
    const KnownDifference* known = reason_for(result);
    text += known ? fmt::format("{} ({})\n", result.name, known->reason) : result.name + "\n";
    if (!result.forward_error.empty()) text += "  forward         error    " + result.forward_error + "\n";
    if (!result.backward_error.empty()) text += "  backward        error    " + result.backward_error + "\n";
    for (const CaseDifference& d : result.differences)
      text += fmt::format("  {:<15} expected {}\n  {:<15} got      {}\n", to_string(d.what), d.expected, "",
                          d.got);
  }
  return text;
}

namespace {

nlohmann::ordered_json counts_json(const ReplayCounts& counts) {
  nlohmann::ordered_json json;
  json["total"] = counts.total;
  json["claimed"] = counts.claimed;
  for (int what = 0; what < kWhats; ++what)
    json[std::string(to_string(static_cast<CaseDifference::What>(what))) + "_equal"] =
        counts.equal[size_t(what)];
  return json;
}

}  // namespace

std::string ReplayReport::json() const {
  nlohmann::ordered_json json;
  json["schema"] = "metaprof.ops_replay";
  json.update(counts_json(totals_));
  json["by_op"] = nlohmann::ordered_json::object();
  for (const auto& [name, counts] : by_op_) json["by_op"][name] = counts_json(counts);
  json["differences"] = nlohmann::ordered_json::array();
  auto add = [&](const CaseResult& result, std::string_view what, std::string_view expected,
                 std::string_view got) -> nlohmann::ordered_json& {
    const KnownDifference* known = reason_for(result);
    json["differences"].push_back(
        {{"case", result.name}, {"what", what}, {"expected", expected}, {"got", got}});
    auto& row = json["differences"].back();
    if (known) row["reason"] = known->reason;
    return row;
  };
  for (const CaseResult& result : differing_) {
    if (!result.forward_error.empty()) add(result, "forward_error", "none", result.forward_error);
    if (!result.backward_error.empty()) add(result, "backward_error", "none", result.backward_error);
    for (const CaseDifference& d : result.differences) {
      auto& row = add(result, to_string(d.what), d.expected, d.got);
      if (d.what == What::forward_events || d.what == What::backward_events) row["bytes"] = d.bytes;
    }
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

ReplayCounts replay_logs(const ReplayOptions& options, std::ostream& out) {
  ReplayReport report;
  for (const std::string& path : options.logs) {
    OpLog log(path);
    RecordedCase recorded;
    while (log.next(recorded))
      if (fnmatch(options.only.c_str(), recorded.name.c_str(), 0) == 0) report.add(replay(recorded));
  }
  if (report.totals().total == 0) fail("no recorded case is named like '{}'", options.only);
  if (options.verbose) out << report.differences_text() << "\n";
  out << report.text();
  if (options.json.empty()) return report.totals();
  std::ofstream file(options.json);
  file << report.json();
  if (!file.flush()) fail("{}: cannot be written", options.json);
  return report.totals();
}

}  // namespace metaprof
