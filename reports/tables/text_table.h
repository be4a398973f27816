#pragma once
// A table of text: a header, a rule, and rows whose columns line up.

#include <string>
#include <vector>

namespace metaprof {

class TextTable {
 public:
  enum class Align : unsigned char { left, right };

  void column(std::string title, Align align = Align::right) {
    columns_.push_back({std::move(title), align, false});
  }
  /// One that is left out where the table would be too wide: those of zeros first, then the last.
  void optional_column(std::string title) { columns_.push_back({std::move(title), Align::right, true}); }
  /// As many cells as columns; they are made plain (shown).
  void row(std::vector<std::string> cells);

  /// Lines with `indent` blanks before each; no blanks at their ends. `width`: characters that a line should take at
  /// most; 0: as many as it needs. Where it is too small, words are cut, then optional columns are left out and
  /// named below the table.
  std::string text(size_t indent = 0, size_t width = 0) const;

 private:
  struct Column {
    std::string title;
    Align align;
    bool optional;
  };
  // What is shown of a table: which columns, and how wide.
  struct Layout {
    std::vector<bool> shown;
    std::vector<size_t> widths;
    size_t indent = 0;
    size_t line() const;
  };
  Layout natural(size_t indent) const;
  void fit(Layout& layout, size_t width) const;
  void cut_words(Layout& layout, size_t width, size_t least) const;
  bool leave_one_out(Layout& layout) const;
  bool is_zero(size_t column) const;
  std::string line(const std::vector<std::string>& cells, const Layout& layout) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace metaprof
