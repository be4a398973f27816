#include "reports/tables/text_table.h"

#include <algorithm>

#include "core/formats/display.h"

namespace metaprof {

void TextTable::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = shown(cell);
  rows_.push_back(std::move(cells));
}

size_t TextTable::Layout::line() const {
  size_t sum = indent, columns = 0;
  for (size_t i = 0; i < widths.size(); ++i)
    if (shown[i]) sum += widths[i], ++columns;
  return sum + 2 * (columns == 0 ? 0 : columns - 1);
}

TextTable::Layout TextTable::natural(size_t indent) const {
  Layout layout{.shown = std::vector<bool>(columns_.size(), true), .widths = {}, .indent = indent};
  for (const Column& column : columns_) layout.widths.push_back(width_of(column.title));
  for (const auto& row : rows_)
    for (size_t i = 0; i < columns_.size(); ++i)
      layout.widths[i] = std::max(layout.widths[i], width_of(row[i]));
  return layout;
}

bool TextTable::is_zero(size_t column) const {
  return std::ranges::all_of(rows_, [&](const auto& row) {
    return row[column].empty() || row[column] == "0" || row[column] == "0.0";
  });
}

// The widest of the words becomes narrower, until the line fits or none is wider than `least`.
void TextTable::cut_words(Layout& layout, size_t width, size_t least) const {
  while (layout.line() > width) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool can = columns_[i].align == Align::left && layout.shown[i] &&
                       layout.widths[i] > std::max(least, width_of(columns_[i].title));
      if (can && (widest == columns_.size() || layout.widths[i] > layout.widths[widest])) widest = i;
    }
    if (widest == columns_.size()) return;
    --layout.widths[widest];
  }
}

bool TextTable::leave_one_out(Layout& layout) const {
  size_t left = 0;
  for (size_t i = 0; i < columns_.size(); ++i) left += columns_[i].optional && layout.shown[i];
  if (left < 2) return false;  // words alone are no table
  for (const bool zeros : {true, false})
    for (size_t i = columns_.size(); i-- > 0;) {
      if (!columns_[i].optional || !layout.shown[i] || (zeros && !is_zero(i))) continue;
      layout.shown[i] = false;
      return true;
    }
  return false;
}

void TextTable::fit(Layout& layout, size_t width) const {
  constexpr size_t kReadableWords = 28, kLeastWords = 12;
  cut_words(layout, width, kReadableWords);
  while (layout.line() > width && leave_one_out(layout)) {
  }
  cut_words(layout, width, kLeastWords);
}

std::string TextTable::line(const std::vector<std::string>& cells, const Layout& layout) const {
  std::string text(layout.indent, ' ');
  bool first = true;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!layout.shown[i]) continue;
    const size_t width = layout.widths[i];
    const std::string cell = width_of(cells[i]) > width ? shown(cells[i], width) : cells[i];
    const std::string padding(width - width_of(cell), ' ');
    if (!first) text += "  ";
    first = false;
    text += columns_[i].align == Align::left ? cell + padding : padding + cell;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

std::string TextTable::text(size_t indent, size_t width) const {
  Layout layout = natural(indent);
  if (width > 0) fit(layout, width);
  std::vector<std::string> titles;
  std::string left_out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    if (!layout.shown[i]) left_out += (left_out.empty() ? "" : "; ") + columns_[i].title;
  }
  std::string text =
      line(titles, layout) + std::string(indent, ' ') + std::string(layout.line() - indent, '-') + '\n';
  for (const auto& row : rows_) text += line(row, layout);
  if (!left_out.empty())
    text += std::string(indent, ' ') + "too narrow for: " + left_out + " (--width 0 shows all)\n";
  return text;
}

}  // namespace metaprof
