#pragma once
// A table of figures, in three forms: text for people, Markdown for people, CSV for programs. Text and
// Markdown give each measure one unit, so that columns can be compared; CSV has plain numbers (bytes, FLOPs,
// seconds).

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace metaprof {

enum class TableForm : uint8_t { text, markdown, csv };
enum class Measure : uint8_t { elements, bytes, flops, seconds };

struct FigureColumn {
  std::string_view name;   ///< in CSV, and for --columns and --sort
  std::string_view title;  ///< in the header of the other forms, before the unit
  Measure measure = Measure::bytes;
};

/// A figure: bytes, elements and FLOPs are integers, seconds are not.
using Figure = std::variant<int64_t, double>;

struct FigureRow {
  std::vector<std::string> words;  ///< as many as there are titles of words
  std::vector<Figure> figures;     ///< as many as columns
  int indent = 0;                  ///< of the first word, in a tree; text only
};

struct FigureTable {
  std::vector<std::string_view> words;  ///< titles of the first columns, which hold words
  std::vector<FigureColumn> columns;
  std::vector<FigureRow> rows;
};

/// `width`: as in TextTable::text, of text alone.
std::string to_string(const FigureTable& table, TableForm form, size_t width = 0);

/// A CSV field: in quotes if it has commas, quotes or line breaks (RFC 4180).
std::string csv_field(std::string_view text);
/// A cell of a Markdown table: `|`, line breaks and backslashes do not end it.
std::string markdown_cell(std::string_view text);

}  // namespace metaprof
