#pragma once
// One line of a program's text, taken word by word.

#include <optional>
#include <string>
#include <string_view>

#include "meta/tensor/value.h"

namespace metaprof {

class ProgramLine {
 public:
  /// `origin` outlives the line; `number` from 1.
  ProgramLine(std::string_view origin, int number, std::string_view text)
      : origin_(origin), number_(number), text_(text) {
    skip_blanks();
  }

  /// Nothing but blanks and a comment is left.
  bool at_end() const { return at_ >= text_.size() || text_[at_] == '#'; }
  bool next_is(char sign) const { return at_ < text_.size() && text_[at_] == sign; }
  bool next_is_letter() const {
    return at_ < text_.size() && ((text_[at_] | 0x20) >= 'a' && (text_[at_] | 0x20) <= 'z');
  }
  /// A word, or a quoted text, and "=" come next.
  bool is_named() const;
  /// The next word, which stays; empty: a sign, a quoted text or the end comes next.
  std::string_view peek() const;

  /// Takes the sign or the word if it comes next.
  bool skip(char sign);
  bool skip(std::string_view word);
  /// Errors: something else comes next.
  void take(char sign);
  /// A word, or a quoted text. `what` names it in messages.
  std::string word(std::string_view what);
  /// A value's name: "%x" gives "x". Errors: it is none.
  std::string value_name();
  int64_t integer(std::string_view what);
  /// "m12" gives 12 for the letter m. Errors: another letter, no number.
  int64_t numbered(char letter, std::string_view what);
  /// A constant: None, True, 4, 0.5, "text", device(cpu), complex(1.0, 2.0), generator, a dtype.
  Value constant();
  /// Of a tensor or a constant: cpu, cuda:0, model.
  Device device();
  void expect_end();

  /// Throws an Error that names the place in the text.
  [[noreturn]] void wrong(std::string_view what) const;
  /// The same: "expected WHAT before 'the rest of the line'".
  [[noreturn]] void expected(std::string_view what) const;

 private:
  void skip_blanks();
  std::string quoted();
  void append_escaped(std::string& text);
  uint32_t escaped_number(std::string_view letter, size_t count);
  Value word_constant(std::string_view word);
  double real(std::string_view word) const;

  std::string_view origin_;
  int number_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace metaprof
