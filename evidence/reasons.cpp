#include "evidence/reasons.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/error.h"

namespace metaprof {
namespace {

// The data file, whose first and last line make it a C++ literal.
constexpr std::string_view kDataFile =
#include "evidence/known_differences.inc"
    ;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The part before the separator, which is taken off with it.
std::string_view take(std::string_view& text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return trimmed(part);
}

bool covers(const KnownDifference& known, CaseDifference::What what) {
  if (known.what == "*") return true;
  std::string_view rest = known.what;
  while (!rest.empty())
    if (take(rest, ',') == to_string(what)) return true;
  return false;
}

bool matches(std::string_view pattern, std::string_view text) {
  return fnmatch(std::string(pattern).c_str(), std::string(text).c_str(), 0) == 0;
}

}  // namespace

std::vector<KnownDifference> parse_known_differences(std::string_view text) {
  std::vector<KnownDifference> out;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = take(text, '\n');
    if (line.empty() || line[0] == '#') continue;
    if (std::count(line.begin(), line.end(), '|') < 3)
      fail("known differences, line {}: expected CASES | DEVICES | WHAT | REASON, got '{}'", number, line);
    KnownDifference known;
    known.cases = take(line, '|');
    known.devices = take(line, '|');
    known.what = take(line, '|');
    known.reason = trimmed(line);
    out.push_back(known);
  }
  return out;
}

const std::vector<KnownDifference>& known_differences() {
  static const std::vector<KnownDifference> known = parse_known_differences(kDataFile);
  return known;
}

const KnownDifference* reason_for(const CaseResult& result) {
  for (const KnownDifference& known : known_differences()) {
    if (!matches(known.cases, result.name) || !matches(known.devices, result.device)) continue;
    bool all = true;
    for (int what = 0; what < kWhats; ++what) {
      const auto w = static_cast<CaseDifference::What>(what);
      all &= result.equal(w) || covers(known, w);
    }
    if (all) return &known;
  }
  return nullptr;
}

}  // namespace metaprof
