#include "reports/tables/figure_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

constexpr size_t kMostNameCharacters = 60;
constexpr size_t kMostWordCharacters = 36;

int64_t integer(const Figure& figure) {
  return std::holds_alternative<int64_t>(figure) ? std::get<int64_t>(figure) : 0;
}

Unit unit_for_seconds(double largest) {
  if (largest < 1e-3) return {"us", 1e-6, 2};
  if (largest < 1) return {"ms", 1e-3, 3};
  return {"s", 1, 3};
}

// One unit for all columns of a measure.
Unit unit_of(const FigureTable& table, Measure measure) {
  int64_t largest = 0;
  double longest = 0;
  for (const FigureRow& row : table.rows) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].measure != measure) continue;
      largest = std::max(largest, integer(row.figures[i]));
      if (const double* seconds = std::get_if<double>(&row.figures[i])) longest = std::max(longest, *seconds);
    }
  }
  switch (measure) {
    case Measure::bytes: return unit_for_bytes(largest);
    case Measure::flops: return unit_for_flops(largest);
    case Measure::seconds: return unit_for_seconds(longest);
    default: return {"", 1, 0};
  }
}

std::string figure_text(const Figure& figure, const Unit& unit) {
  if (const int64_t* number = std::get_if<int64_t>(&figure)) return in_unit(*number, unit);
  const double seconds = std::get<double>(figure);
  return seconds == 0 ? "0" : fmt::format("{:.{}f}", seconds / unit.size, unit.decimals);
}

std::string csv(const FigureTable& table) {
  std::string text;
  const auto field = [&](std::string_view word, bool first) {
    if (!first) text += ',';
    text += csv_field(word);
  };
  for (size_t i = 0; i < table.words.size(); ++i) field(table.words[i], i == 0);
  for (const FigureColumn& column : table.columns) field(column.name, text.empty());
  text += '\n';
  for (const FigureRow& row : table.rows) {
    for (size_t i = 0; i < row.words.size(); ++i) field(row.words[i], i == 0);
    for (size_t i = 0; i < row.figures.size(); ++i) {
      const std::string number =
          std::visit([](const auto value) { return fmt::format("{}", value); }, row.figures[i]);
      field(number, i == 0 && row.words.empty());
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> titles(const FigureTable& table, const std::vector<Unit>& units) {
  std::vector<std::string> titles;
  for (size_t i = 0; i < table.columns.size(); ++i)
    titles.push_back(
        fmt::format("{}{}{}", table.columns[i].title, units[i].name.empty() ? "" : ", ", units[i].name));
  return titles;
}

std::string text_form(const FigureTable& table, const std::vector<Unit>& units, size_t width) {
  TextTable text;
  for (const std::string_view word : table.words) text.column(std::string(word), TextTable::Align::left);
  for (const std::string& title : titles(table, units)) text.optional_column(title);
  for (const FigureRow& row : table.rows) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < row.words.size(); ++i)
      cells.push_back(i == 0 ? std::string(2 * static_cast<size_t>(std::min(row.indent, 12)), ' ') +
                                   shown(row.words[i], kMostNameCharacters)
                             : shown(row.words[i], kMostWordCharacters));
    for (size_t i = 0; i < row.figures.size(); ++i) cells.push_back(figure_text(row.figures[i], units[i]));
    text.row(std::move(cells));
  }
  return text.text(0, width);
}

std::string markdown(const FigureTable& table, const std::vector<Unit>& units) {
  std::string head = "|", rule = "|";
  for (const std::string_view word : table.words) {
    head += fmt::format(" {} |", word);
    rule += " :-- |";
  }
  for (const std::string& title : titles(table, units)) {
    head += fmt::format(" {} |", title);
    rule += " --: |";
  }
  std::string text = head + '\n' + rule + '\n';
  for (const FigureRow& row : table.rows) {
    text += '|';
    for (const std::string& word : row.words)
      text += fmt::format(" {} |", markdown_cell(shown(word, 2 * kMostNameCharacters)));
    for (size_t i = 0; i < row.figures.size(); ++i)
      text += fmt::format(" {} |", figure_text(row.figures[i], units[i]));
    text += '\n';
  }
  return text;
}

bool reads_as_number(std::string_view text) {
  double number = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string csv_field(std::string_view text) {
  std::string field = shown(text);
  // Spreadsheets take what begins so for a formula, and would run it (CWE-1236); a number is none.
  if (!field.empty() && std::string_view("=+-@").find(field[0]) != std::string_view::npos &&
      !reads_as_number(field))
    field.insert(0, "'");
  if (field.find_first_of(",\"") == field.npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : shown(text)) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '`' || c == '<') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string to_string(const FigureTable& table, TableForm form, size_t width) {
  if (form == TableForm::csv) return csv(table);
  std::vector<Unit> units;
  for (const FigureColumn& column : table.columns) units.push_back(unit_of(table, column.measure));
  return form == TableForm::markdown ? markdown(table, units) : text_form(table, units, width);
}

}  // namespace metaprof
