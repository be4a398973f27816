#include "reports/plans/plan_python.h"

#include <fmt/format.h>

#include "reports/page/page_files.h"

namespace metaprof {
namespace {

constexpr std::string_view kPlace = "PLAN = \"\"\n";

// Within quotes; what is not printable cannot stand in a path's pattern unless a file was made to do harm.
std::string python_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < ' ')
      out += fmt::format("\\x{:02x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string plan_python(const std::vector<std::string>& patterns, const std::string& about) {
  std::string plan = "PLAN = (";
  for (const std::string& pattern : patterns)
    plan += "\n    " + python_text(pattern == patterns.back() ? pattern : pattern + " ");
  if (patterns.empty()) plan += "\"\"";
  plan += patterns.empty() ? ")\n" : "\n)\n";
  std::string comment;
  for (const char c : about) comment += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  std::string text(apply_plan_py);
  text.replace(text.find(kPlace), kPlace.size(), fmt::format("# {}\n{}", comment, plan));
  return text;
}

}  // namespace metaprof
