#include "step/repeated_modules.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

namespace metaprof {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "a.layer1", "a.layer2" → "a.layer?": nothing if they differ in more than one character.
std::optional<std::string> common_pattern(const std::vector<std::string>& paths) {
  std::string pattern = paths.at(0);
  for (const std::string& path : paths) {
    if (path.size() != pattern.size()) return std::nullopt;
    for (size_t i = 0; i < path.size(); ++i)
      if (path[i] != pattern[i]) pattern[i] = '?';
  }
  return std::ranges::count(pattern, '?') <= 1 ? std::optional(pattern) : std::nullopt;
}

}  // namespace

std::string repeated_modules(const Program& program) {
  std::map<std::string, int> children;
  for (const std::string& path : program.modules) {
    const size_t dot = path.rfind('.');
    if (dot != std::string::npos && is_number(std::string_view(path).substr(dot + 1)))
      ++children[path.substr(0, dot)];
  }
  std::vector<std::string> outermost;
  auto depth = [](const std::string& path) { return std::ranges::count(path, '.'); };
  for (const auto& [path, count] : children) {
    if (count < 2) continue;
    if (!outermost.empty() && depth(path) > depth(outermost[0])) continue;
    if (!outermost.empty() && depth(path) < depth(outermost[0])) outermost.clear();
    outermost.push_back(path);
  }
  if (outermost.empty()) return "";
  const auto pattern = common_pattern(outermost);
  return pattern ? *pattern + ".*" : "";
}

}  // namespace metaprof
