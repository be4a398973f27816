#include "estimate/plan/strategies/path_patterns.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace metaprof {
namespace {

// A path with its last number taken out: "h.3.attn" is what 3 is of "h." and ".attn".
struct Numbered {
  std::string before, number, after;
  auto family() const { return std::pair(before, after); }
};

bool is_number(const std::string& segment) {
  return !segment.empty() &&
         std::ranges::all_of(segment, [](unsigned char c) { return std::isdigit(c) != 0; });
}

Numbered numbered(const std::string& path) {
  for (size_t end = path.size();;) {
    const size_t dot = path.rfind('.', end - 1);
    const size_t begin = dot == std::string::npos || end == 0 ? 0 : dot + 1;
    if (is_number(path.substr(begin, end - begin)))
      return {path.substr(0, begin), path.substr(begin, end - begin), path.substr(end)};
    if (begin == 0) return {path, "", ""};
    end = begin - 1;
  }
}

// Wildcards that a path itself contains stand for themselves.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// "[0-7]", "1[0-5]": the numbers that differ in their last digit only, and follow each other.
std::vector<std::string> runs(const std::set<std::string>& numbers) {
  std::map<std::string, std::string> last_digits;  // by what is before them
  for (const std::string& number : numbers) last_digits[number.substr(0, number.size() - 1)] += number.back();
  std::vector<std::string> out;
  for (auto& [before, digits] : last_digits) {
    std::ranges::sort(digits);
    for (size_t first = 0, next = 0; first < digits.size(); first = next) {
      for (next = first + 1; next < digits.size() && digits[next] == digits[next - 1] + 1;) ++next;
      const char least = digits[first], most = digits[next - 1];
      out.push_back(before +
                    (least == most ? std::string(1, least) : std::string{'[', least, '-', most, ']'}));
    }
  }
  std::ranges::stable_sort(out, {}, &std::string::size);
  return out;
}

}  // namespace

std::vector<std::string> path_patterns(const std::vector<std::string>& chosen,
                                       const std::vector<std::string>& all) {
  using Family = std::pair<std::string, std::string>;
  std::map<Family, std::set<std::string>> members, of_all;
  std::vector<Family> order;
  for (const std::string& path : chosen) {
    const Numbered one = numbered(path);
    if (members[one.family()].empty()) order.push_back(one.family());
    members[one.family()].insert(one.number);
  }
  for (const std::string& path : all) of_all[numbered(path).family()].insert(numbered(path).number);
  // "h.*.attn" may match what is not numbered: "h.first.attn".
  const auto others_match = [&](const Family& family, size_t count) {
    size_t matching = 0;
    for (const std::string& path : all) {
      if (path.size() <= family.first.size() + family.second.size()) continue;
      if (!path.starts_with(family.first) || !path.ends_with(family.second)) continue;
      const std::string middle =
          path.substr(family.first.size(), path.size() - family.first.size() - family.second.size());
      if (middle.find('.') == std::string::npos) ++matching;
    }
    return matching != count;
  };
  std::vector<std::string> patterns;
  for (const Family& family : order) {
    const std::set<std::string>& numbers = members[family];
    const std::string before = quoted(family.first), after = quoted(family.second);
    if (numbers.contains("")) {
      patterns.push_back(before);
    } else if (numbers.size() > 1 && numbers == of_all[family] && !others_match(family, numbers.size())) {
      patterns.push_back(before + "*" + after);
    } else {
      for (const std::string& run : runs(numbers)) patterns.push_back(before + run + after);
    }
  }
  return patterns;
}

}  // namespace metaprof
