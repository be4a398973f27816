#include "reports/sections/peak_contributors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/formats/display.h"
#include "meta/trace/module_path.h"
#include "reports/sections/folded_module.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

constexpr size_t kMostShown = 7, kMostOperators = 4;

// "aten::_foreach_sqrt" → "_foreach_sqrt"
std::string_view short_op(std::string_view op) {
  const size_t colons = op.rfind("::");
  return colons == op.npos ? op : op.substr(colons + 2);
}

// Its texts are those of the storages, and of folded modules.
struct Group {
  Category category = Category::activation;
  std::string_view path;
  std::set<std::string_view> layers, names;
  std::map<std::string_view, std::pair<int64_t, std::set<std::string_view>>>
      bytes_by_home;  // of named ones, with layers
  std::map<std::string_view, int64_t> bytes_by_op;
  Bytes bytes;
  size_t storages = 0;
  const LargeStorage* largest = nullptr;
};

bool belongs_to_all(Category category) {
  return category == Category::parameter || category == Category::gradient || category == Category::buffer ||
         category == Category::optimizer_state || category == Category::input ||
         category == Category::workspace;
}

std::string operators_of(const Group& group) {
  std::vector<std::pair<int64_t, std::string_view>> ops;
  for (const auto& [op, bytes] : group.bytes_by_op)
    if (!op.empty()) ops.emplace_back(-bytes, short_op(op));
  std::ranges::sort(ops);
  std::string text;
  for (size_t i = 0; i < std::min(ops.size(), kMostOperators); ++i)
    text.append(i == 0 ? "" : ", ").append(ops[i].second);
  return ops.size() > kMostOperators ? text + ", …" : text;
}

// " (69 %: 16 × model.model.layers.*.mlp)": the modules that have most of it; empty: it is not known, or all.
std::string largest_home(const Group& group) {
  if (group.bytes_by_home.size() < 2) return "";
  const auto largest =
      std::ranges::max_element(group.bytes_by_home, {}, [](const auto& home) { return home.second.first; });
  const auto& [bytes, layers] = largest->second;
  return fmt::format(" ({:.0f} %: {}{})",
                     100.0 * static_cast<double>(bytes) / static_cast<double>(group.bytes.count),
                     layers.size() > 1 ? fmt::format("{} × ", layers.size()) : "", largest->first);
}

std::string name_of(const Group& group) {
  const size_t named = group.names.size();
  switch (group.category) {
    case Category::parameter: return fmt::format("{} parameters{}", group.storages, largest_home(group));
    case Category::gradient:
      return (named == 0 ? fmt::format("gradients, {} tensors", group.storages)
                         : fmt::format("gradients of {} parameters", named)) +
             largest_home(group);
    case Category::buffer: return fmt::format("{} buffers", group.storages);
    case Category::optimizer_state:
      return (named == 0 ? "optimizer state" : fmt::format("optimizer state of {} parameters", named)) +
             largest_home(group);
    case Category::input: return fmt::format("{} inputs", group.storages);
    case Category::workspace: return "workspaces of libraries";
    default: break;
  }
  std::string text = group.layers.size() > 1 ? fmt::format("{} × ", group.layers.size()) : "";
  text += group.path.empty() ? "(root)" : group.path;
  if (const std::string ops = operators_of(group); !ops.empty()) text += ": " + ops;
  return group.category == Category::activation ? text
                                                : text + fmt::format(" ({})", to_string(group.category));
}

}  // namespace

std::vector<PeakContributor> peak_contributors_of(const std::vector<LargeStorage>& held,
                                                  const SourceLines& lines) {
  std::unordered_map<std::string_view, FoldedModule> folded_modules;  // many storages are of one module
  const auto folded = [&](std::string_view path) -> const FoldedModule& {
    const auto [found, is_new] = folded_modules.try_emplace(path);
    if (is_new) found->second = folded_module(path);
    return found->second;
  };
  std::map<std::pair<Category, std::string_view>, Group> groups;
  for (const LargeStorage& storage : held) {
    const FoldedModule& module =
        folded(belongs_to_all(storage.category) ? std::string_view() : storage.module);
    Group& group = groups[{storage.category, module.path}];
    group.category = storage.category;
    group.path = module.path;
    group.layers.insert(module.layer);
    if (!storage.name.empty()) {
      group.names.insert(storage.name);
      const FoldedModule& home = folded(parent_path(storage.name));
      auto& [bytes, layers] = group.bytes_by_home[home.path];
      bytes += storage.bytes.count;
      layers.insert(home.layer);
    }
    group.bytes_by_op[storage.op] += storage.bytes.count;
    group.bytes += storage.bytes;
    ++group.storages;
    if (!group.largest || storage.bytes > group.largest->bytes) group.largest = &storage;
  }
  std::vector<PeakContributor> peak_contributors;
  peak_contributors.reserve(groups.size());
  for (const auto& [key, group] : groups)
    peak_contributors.push_back({.what = name_of(group),
                                 .bytes = group.bytes,
                                 .storages = group.storages,
                                 .line = belongs_to_all(group.category)
                                             ? ""
                                             : lines.line_of(group.largest->module, group.largest->op)});
  std::ranges::stable_sort(peak_contributors, std::greater<>(),
                           [](const PeakContributor& contributor) { return contributor.bytes.count; });
  return peak_contributors;
}

std::string peak_contributors_table(const std::vector<PeakContributor>& peak_contributors, size_t width) {
  if (peak_contributors.empty()) return "";
  Bytes all, rest;
  for (const PeakContributor& contributor : peak_contributors) all += contributor.bytes;
  for (size_t i = kMostShown; i < peak_contributors.size(); ++i) rest += peak_contributors[i].bytes;
  TextTable table;
  table.column("bytes");
  table.column("share, %");
  table.column("what", TextTable::Align::left);
  table.column("line", TextTable::Align::left);
  const auto add = [&](Bytes bytes, const std::string& what, const std::string& line) {
    table.row(
        {human_bytes(bytes.count),
         fmt::format("{:.0f}", 100.0 * static_cast<double>(bytes.count) / static_cast<double>(all.count)),
         shown(what, 84), shown(line, 40)});
  };
  for (size_t i = 0; i < std::min(peak_contributors.size(), kMostShown); ++i)
    add(peak_contributors[i].bytes, peak_contributors[i].what, peak_contributors[i].line);
  if (peak_contributors.size() > kMostShown)
    add(rest, fmt::format("{} more", peak_contributors.size() - kMostShown), "");
  return table.text(2, width);
}

}  // namespace metaprof
