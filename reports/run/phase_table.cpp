#include "reports/run/phase_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Rows = std::vector<RepeatedPhase>;

bool is_of_setup(const RunPhase& row) { return row.phase == "setup"; }

bool are_same(const RepeatedPhase& a, const RepeatedPhase& b) {
  const AllocatorNumbers &x = a.row->numbers, &y = b.row->numbers;
  return a.row->name == b.row->name && a.row->phase == b.row->phase &&
         x.allocated_bytes.current == y.allocated_bytes.current &&
         x.allocated_bytes.peak == y.allocated_bytes.peak &&
         x.requested_bytes.peak == y.requested_bytes.peak &&
         x.reserved_bytes.current == y.reserved_bytes.current &&
         x.reserved_bytes.peak == y.reserved_bytes.peak;
}

// Stretches of `rows` by what `key` gives, joined where one has the same rows as the one before: `join(kept row, row that goes)`.
template <typename Key, typename Same, typename Join>
Rows joined(const Rows& rows, const Key& key, const Same& same, const Join& join) {
  Rows out;
  size_t last = 0;  // where the last stretch begins in `out`
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    end = begin + 1;
    while (end < rows.size() && key(rows[end]) == key(rows[begin])) ++end;
    const std::span stretch(rows.data() + begin, end - begin);
    const std::span before(out.data() + last, out.size() - last);
    if (std::ranges::equal(before, stretch, same)) {
      for (size_t i = 0; i < stretch.size(); ++i) join(out[last + i], stretch[i]);
      continue;
    }
    last = out.size();
    out.insert(out.end(), stretch.begin(), stretch.end());
  }
  return out;
}

std::string from_to(int64_t first, int64_t last) {
  return first == last ? fmt::format("{}", first + 1) : fmt::format("{} to {}", first + 1, last + 1);
}

size_t largest(const Rows& rows) {
  const auto peak = [](const RepeatedPhase& row) { return row.row->numbers.allocated_bytes.peak; };
  return static_cast<size_t>(std::ranges::max_element(rows, {}, peak) - rows.begin());
}

// Which of them a table of at most `most` shows.
std::vector<bool> chosen(const Rows& rows, size_t most) {
  std::vector<bool> shown(rows.size(), most == 0 || rows.size() <= most);
  if (rows.empty() || shown[0]) return shown;
  const size_t peak = largest(rows);
  shown[0] = shown.back() = shown[peak] = true;
  size_t left = most - static_cast<size_t>(std::ranges::count(shown, true));
  for (size_t i = 0; i < rows.size() && left > 0; ++i) {
    left -= !shown[i];
    shown[i] = true;
  }
  return shown;
}

}  // namespace

std::vector<RepeatedPhase> repeated_phases(const std::vector<RunPhase>& rows) {
  Rows all;
  all.reserve(rows.size());
  for (const RunPhase& row : rows) all.push_back({&row, row.step, row.micro});
  const auto step = [](const RepeatedPhase& row) { return std::pair(is_of_setup(*row.row), row.row->step); };
  all = joined(
      all, [&](const RepeatedPhase& row) { return std::tuple(step(row), row.row->micro); },
      [&](const RepeatedPhase& a, const RepeatedPhase& b) {
        return step(a) == step(b) && a.row->micro >= 0 && b.row->micro >= 0 && are_same(a, b);
      },
      [](RepeatedPhase& kept, const RepeatedPhase& goes) { kept.last_micro = goes.last_micro; });
  return joined(
      all, step,
      [](const RepeatedPhase& a, const RepeatedPhase& b) {
        return !is_of_setup(*a.row) && !is_of_setup(*b.row) && a.row->micro == b.row->micro &&
               a.last_micro == b.last_micro && are_same(a, b);
      },
      [](RepeatedPhase& kept, const RepeatedPhase& goes) { kept.last_step = goes.last_step; });
}

std::string phase_table(const std::vector<RunPhase>& rows, size_t most) {
  TextTable table;
  int64_t reserved = 0;
  for (const RunPhase& row : rows) reserved = std::max(reserved, row.numbers.reserved_bytes.peak);
  const Unit unit = unit_for_bytes(reserved);
  const bool micro = std::ranges::any_of(rows, [](const RunPhase& row) { return row.micro >= 0; });
  table.column("step");
  if (micro) table.column("micro");
  table.column("phase", TextTable::Align::left);
  table.column(fmt::format("allocated, {}", unit.name));
  for (const char* title : {"peak", "requested peak", "reserved", "reserved peak"}) table.column(title);
  const Rows all = repeated_phases(rows);
  const std::vector<bool> shown = chosen(all, most);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!shown[i]) continue;
    const RunPhase& row = *all[i].row;
    const AllocatorNumbers& n = row.numbers;
    std::vector<std::string> cells{is_of_setup(row) ? "" : from_to(row.step, all[i].last_step)};
    if (micro) cells.push_back(row.micro < 0 ? "" : from_to(row.micro, all[i].last_micro));
    for (std::string& cell : std::vector<std::string>{
             row.name, in_unit(n.allocated_bytes.current, unit), in_unit(n.allocated_bytes.peak, unit),
             in_unit(n.requested_bytes.peak, unit), in_unit(n.reserved_bytes.current, unit),
             in_unit(n.reserved_bytes.peak, unit)})
      cells.push_back(std::move(cell));
    table.row(std::move(cells));
  }
  std::string text = table.text();
  if (const auto hidden = std::ranges::count(shown, false); hidden > 0)
    text += fmt::format("{} not shown (--all)\n",
                        hidden == 1 ? "one more row is" : fmt::format("{} more rows are", hidden));
  return text;
}

}  // namespace metaprof
