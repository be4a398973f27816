#include "validation/cases/reasons.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof {
namespace {

// The data file, whose first and last line make it a C++ literal.
constexpr std::string_view kDataFile =
#include "validation/cases/known_differences.inc"
    ;

bool covers(const KnownDifference& known, CaseDifference::What what) {
  if (known.what == "*") return true;
  for (TextCursor words(known.what); !words.at_end();)
    if (trimmed(words.part(',')) == to_string(what)) return true;
  return false;
}

bool matches(std::string_view pattern, std::string_view text) {
  return fnmatch(std::string(pattern).c_str(), std::string(text).c_str(), 0) == 0;
}

}  // namespace

std::vector<KnownDifference> parse_known_differences(std::string_view text) {
  std::vector<KnownDifference> out;
  TextCursor lines(text);
  for (int number = 1; !lines.at_end(); ++number) {
    const std::string_view line = trimmed(lines.part('\n'));
    if (line.empty() || line[0] == '#') continue;
    if (std::count(line.begin(), line.end(), '|') < 3)
      fail("known differences, line {}: expected CASES | DEVICES | WHAT | REASON, got '{}'", number, line);
    KnownDifference known;
    TextCursor parts(line);
    known.cases = trimmed(parts.part('|'));
    known.devices = trimmed(parts.part('|'));
    known.what = trimmed(parts.part('|'));
    known.reason = trimmed(parts.rest());
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
