#include "estimate/search/grid.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/error.h"
#include "estimate/prepare/named_module.h"
#include "meta/platform/hardware.h"

namespace metaprof {
namespace {

constexpr size_t kMostCombinations = 100'000;

// The one that changes least comes first.
int place_of(const RunOption& option) {
  if (option.name == "device") return 0;
  if (option.group == RunOption::Group::step) return 1;
  if (option.group == RunOption::Group::device) return 2;
  return option.name == "batch" ? 4 : 3;
}

// "1:8" of a whole number; nothing: it is no range.
std::optional<std::pair<int64_t, int64_t>> range_in(const RunOption& option, const std::string& text) {
  const size_t colon = text.find(':');
  if (option.rule.kind != OptionRule::Kind::whole || colon == std::string::npos) return std::nullopt;
  const auto first = option.rule.read(text.substr(0, colon)), last = option.rule.read(text.substr(colon + 1));
  if (!first || !last || *first > *last)
    fail("{}: '{}' is no range; write 1:8, from {}", option.flag(), text, option.rule.expected());
  return std::pair(std::get<int64_t>(*first), std::get<int64_t>(*last));
}

// Every card that is known, the one with the most memory first, as `metaprof devices` lists them.
std::vector<std::string> all_cards() {
  std::vector<const Hardware*> cards;
  for (const Hardware& known : known_hardware())
    if (!known.is_cpu()) cards.push_back(&known);
  std::ranges::stable_sort(cards, std::greater<>(), [](const Hardware* card) { return card->memory.count; });
  std::vector<std::string> names;
  names.reserve(cards.size());
  for (const Hardware* card : cards) names.push_back(card->name);
  return names;
}

}  // namespace

void Grid::add(const RunOption& option, std::string_view text) {
  if (!option.in_grid) return set_from_text(common, option, text);
  std::vector<std::string> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string value(text.substr(begin, end - begin));
    begin = end + 1;
    if (option.name == "device" && value == "all") {
      for (std::string& name : all_cards()) values.push_back(std::move(name));
      continue;
    }
    if (const auto range = range_in(option, value)) {
      if (range->second - range->first >= static_cast<int64_t>(kMostCombinations))
        fail("more than {} combinations; leave some values out", kMostCombinations);
      for (int64_t number = range->first; number <= range->second; ++number)
        values.push_back(std::to_string(number));
      continue;
    }
    RunOptions scratch;
    set_from_text(scratch, option, value);
    values.push_back(value);
  }
  lists.push_back({&option, std::move(values)});
}

bool Grid::has(std::string_view name) const {
  return std::ranges::any_of(lists, [&](const GridValues& list) { return list.option->name == name; });
}

Model read_model_for(const Grid& grid, const std::string& named) {
  const bool reads_with_inputs = names_module(named) || !grid.common.inputs.empty();
  return reads_with_inputs ? read_model(named, combinations(grid).front()) : read_model(named);
}

std::vector<RunOptions> combinations(const Grid& grid) {
  std::vector<GridValues> lists = grid.lists;
  std::ranges::stable_sort(lists, {}, [](const GridValues& list) {
    return std::pair(place_of(*list.option), list.option - run_options().data());
  });
  std::vector<RunOptions> runs{grid.common};
  for (const GridValues& list : lists) {
    if (runs.size() * list.values.size() > kMostCombinations)
      fail("more than {} combinations; leave some values out", kMostCombinations);
    std::vector<RunOptions> more;
    for (const RunOptions& run : runs)
      for (const std::string& value : list.values) set_from_text(more.emplace_back(run), *list.option, value);
    runs = std::move(more);
  }
  return runs;
}

Shard Shard::from_text(std::string_view text) {
  static const OptionRule kPositive{OptionRule::Kind::whole, 1, std::numeric_limits<int32_t>::max()};
  const size_t slash = std::min(text.find('/'), text.size());
  const auto index = kPositive.read(text.substr(0, slash));
  const auto count = kPositive.read(text.substr(std::min(slash + 1, text.size())));
  if (!index || !count || *index > *count) fail("--shard {}: expected I/N with I from 1 to N, as 3/16", text);
  return {std::get<int64_t>(*index), std::get<int64_t>(*count)};
}

std::pair<size_t, size_t> Shard::range(size_t combinations) const {
  const auto end_of = [&](int64_t shards) {
    return combinations * static_cast<size_t>(shards) / static_cast<size_t>(count);
  };
  return {end_of(index - 1), end_of(index)};
}

std::vector<std::string> telling_options(const std::vector<RunOptions>& runs, const RunOptions& usual,
                                         std::vector<std::string> always) {
  for (const RunOption& option : run_options()) {
    const std::string name(option.name);
    const OptionValue value = option.value(usual);
    if (std::ranges::find(always, name) == always.end() &&
        std::ranges::any_of(runs, [&](const RunOptions& run) { return option.value(run) != value; }))
      always.push_back(name);
  }
  return always;
}

std::vector<std::pair<std::string, OptionValue>> shown_options(const RunOptions& run) {
  std::vector<std::pair<std::string, OptionValue>> shown{{"device", run.device}};
  for (const RunOption& option : run_options())
    if (option.name != "device") shown.emplace_back(option.name, option.value(run));
  return shown;
}

}  // namespace metaprof
