#include "reports/sections/folded_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace metaprof {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool number_follows(std::string_view path) {
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    if (is_number(path.substr(0, dot))) return true;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return false;
}

}  // namespace

FoldedModule folded_module(std::string_view path) {
  constexpr int kMostParts = 3;
  FoldedModule result;
  int parts = 0, behind_layer = 0;
  while (!path.empty() && behind_layer < 2) {
    if (result.layer.empty() && parts >= kMostParts && !number_follows(path)) break;
    const size_t dot = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (is_number(part)) result.layer += std::string(part) + ".";
    ++parts;
    if (!result.layer.empty()) ++behind_layer;
    result.path += (result.path.empty() ? "" : ".") + (is_number(part) ? "*" : std::string(part));
  }
  return result;
}

std::string folded_modules(const std::vector<std::string>& paths) {
  std::vector<std::pair<std::string, size_t>> counted;
  for (const std::string& path : paths) {
    const std::string folded = folded_module(path).path;
    const auto found = std::ranges::find(counted, folded, &std::pair<std::string, size_t>::first);
    if (found == counted.end())
      counted.emplace_back(folded, 1);
    else
      ++found->second;
  }
  std::string text;
  for (const auto& [path, count] : counted)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", count > 1 ? fmt::format("{} × ", count) : "",
                        path.empty() ? "(root)" : path);
  return text;
}

}  // namespace metaprof
