#pragma once
// The words of Python code, with blocks as signs of their own.

#include <string>
#include <string_view>
#include <vector>

namespace metaprof::script {

struct Token {
  enum class Kind : uint8_t { word, number, text, sign, line_end, indent, dedent, end };
  Kind kind = Kind::end;
  int line = 0;
  std::string text;  ///< of a text, what it stands for
};

/// Ends with Kind::end. Errors: a text without an end, a character that no code has; `file` is for messages.
std::vector<Token> tokens_of(std::string_view code, const std::string& file);

}  // namespace metaprof::script
