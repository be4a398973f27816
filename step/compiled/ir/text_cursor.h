#pragma once
// A place in the text of a graph: skips blanks and comments, knows the line, reads words and constants.

#include <string>
#include <string_view>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

class GraphText {
 public:
  explicit GraphText(std::string_view text) : text_(text) { skip_blanks(); }

  bool at_end() const { return at_ >= text_.size(); }
  bool next_is(std::string_view sign) const { return text_.substr(at_).starts_with(sign); }
  /// Takes the sign if it comes next.
  bool accept(std::string_view sign);
  void take(std::string_view sign);
  /// Letters, digits and "_.:/-"; may be empty.
  std::string_view word();
  std::string_view peek_word() const;
  /// "%x" gives "x".
  std::string value_name();
  /// None, True, 4, 0.5, "text", [1, 2], device(cpu), a dtype as its number.
  Constant constant();
  /// "Tensor(f32[2,*] cpu grad)?"
  Type type();
  [[noreturn]] void wrong(std::string_view what) const;

 private:
  void skip_blanks();
  std::string quoted();
  Constant list();
  Constant number(std::string_view word);
  TensorDetail detail();
  bool list_requires_grad();
  void sizes(TensorDetail& detail);
  int64_t integer();

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace metaprof::ir
