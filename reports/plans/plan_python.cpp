#include "reports/plans/plan_python.h"

#include <fmt/format.h>

#include "core/shown_text.h"
#include "reports/page/page_files.h"

namespace metaprof {
namespace {

constexpr std::string_view kPlace = "PLAN = \"\"\n";

// Within quotes. What `shown` writes for characters is what Python reads as the same.
std::string python_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return "\"" + shown(out) + "\"";
}

}  // namespace

std::string plan_python(const std::vector<std::string>& patterns, const std::string& about) {
  std::string plan = "PLAN = (";
  for (const std::string& pattern : patterns)
    plan += "\n    " + python_text(pattern == patterns.back() ? pattern : pattern + " ");
  if (patterns.empty()) plan += "\"\"";
  plan += patterns.empty() ? ")\n" : "\n)\n";
  std::string text(apply_plan_py);
  text.replace(text.find(kPlace), kPlace.size(), fmt::format("# {}\n{}", shown(about), plan));
  return text;
}

}  // namespace metaprof
