#include "reports/pictures/equal_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "meta/trace/module_path.h"

namespace metaprof {
namespace {

std::string_view last_part(std::string_view path) {
  const size_t dot = path.rfind('.');
  return path.substr(dot == path.npos ? 0 : dot + 1);
}

bool is_numbered(std::string_view path) {
  const std::string_view part = last_part(path);
  return !part.empty() && part.size() < 9 &&
         std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
}

int number_of(std::string_view path) { return std::stoi(std::string(last_part(path))); }

// Of each numbered module what its nodes are, in their order, and where in it.
std::map<std::string, std::string, std::less<>> contents(const std::vector<NodeRow>& rows) {
  std::map<std::string, std::string, std::less<>> contents;
  for (const NodeRow& row : rows)
    for (const std::string_view path : enclosing_modules(row.module))
      if (is_numbered(path))
        contents[std::string(path)] += row.module.substr(path.size()) + " " + row.op + ";";
  return contents;
}

}  // namespace

EqualLayers::EqualLayers(const std::vector<NodeRow>& rows, bool fold) : rows_(rows), same_as_(rows.size()) {
  std::iota(same_as_.begin(), same_as_.end(), size_t{0});
  if (!fold) return;
  find_equal_ones();
  std::map<std::string, std::vector<size_t>, std::less<>> by_module;
  std::vector<size_t> place(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<size_t>& in_module = by_module[rows[i].module];
    place[i] = in_module.size();
    in_module.push_back(i);
  }
  for (size_t i = 0; i < rows.size(); ++i) same_as_[i] = by_module.at(drawn(rows[i].module)).at(place[i]);
}

void EqualLayers::find_equal_ones() {
  const auto what = contents(rows_);
  std::map<std::string, std::map<int, std::string>> numbered;  // by the path around them
  for (const auto& [path, nodes] : what) numbered[std::string(parent_path(path))][number_of(path)] = path;
  for (const auto& [around, children] : numbered) {
    const std::string* first = nullptr;
    int before = 0;
    for (const auto& [number, path] : children) {
      const bool goes_on = first && number == before + 1 && what.at(path) == what.at(*first);
      if (!goes_on) first = &path;
      first_[path] = *first;
      last_[*first] = std::to_string(number);
      ++count_[*first];
      before = number;
    }
  }
}

// The first equal one at every level, from the outermost on.
std::string EqualLayers::drawn(std::string_view path) const {
  std::string result(path);
  for (size_t end = 0; end < result.size();) {
    end = std::min(result.find('.', end), result.size());
    const auto found = first_.find(std::string_view(result).substr(0, end));
    if (found != first_.end()) {
      result.replace(0, end, found->second);
      end = found->second.size();
    }
    ++end;
  }
  return result;
}

bool EqualLayers::between_layers(size_t row, size_t other) const {
  const std::string &path = rows_[row].module, &next = rows_[other].module;
  for (const std::string_view a : enclosing_modules(path)) {
    if (!first_.contains(a)) continue;
    for (const std::string_view b : enclosing_modules(next))
      if (a != b && first_.contains(b) && drawn(a) == drawn(b)) return true;
  }
  return false;
}

std::string EqualLayers::title(const std::string& path) const {
  const auto count = count_.find(path);
  if (count == count_.end() || count->second < 2) return path;
  return fmt::format("{} … {}, {} equal ones", path, last_.at(path), count->second);
}

}  // namespace metaprof
