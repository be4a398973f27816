#include "reports/text_table.h"

#include <algorithm>

#include "reports/format.h"

namespace metaprof {

std::string TextTable::line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                            size_t indent) const {
  std::string text(indent, ' ');
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string padding(widths[i] - width_of(cells[i]), ' ');
    if (i > 0) text += "  ";
    text += columns_[i].align == Align::left ? cells[i] + padding : padding + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

std::string TextTable::text(size_t indent) const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(width_of(column.title));
  }
  for (const auto& row : rows_)
    for (size_t i = 0; i < columns_.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));

  std::string text = line(titles, widths, indent) + std::string(indent, ' ');
  for (size_t i = 0; i < widths.size(); ++i) text += std::string(widths[i] + (i > 0 ? 2 : 0), '-');
  text += '\n';
  for (const auto& row : rows_) text += line(row, widths, indent);
  return text;
}

}  // namespace metaprof
