#pragma once
// A table of text: a header, a rule, and rows whose columns line up.

#include <string>
#include <vector>

namespace metaprof {

class TextTable {
 public:
  enum class Align : unsigned char { left, right };

  void column(std::string title, Align align = Align::right) {
    columns_.push_back({std::move(title), align});
  }
  /// As many cells as columns.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// Lines with `indent` blanks before each; no blanks at their ends.
  std::string text(size_t indent = 0) const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                   size_t indent) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace metaprof
