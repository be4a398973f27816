#pragma once
// Checks a JSON text and lists its values. Used by JsonDocument only.

#include "formats/json.h"

namespace metaprof {

class JsonScanner {
 public:
  /// Values inside more than `fold_depth` lists and objects get no tokens.
  JsonScanner(JsonDocument& document, std::string_view text, int fold_depth);

  /// Checks the whole text. Errors: syntax, UTF-8, depth, size.
  void scan();

 private:
  void skip_blanks();
  void open(Json::Type type);
  bool close();
  bool value();
  void separator();
  void key();
  void string();
  void escape();
  void utf8_sequence();
  void number();
  void word(std::string_view word, Json::Type type);
  void add(Json::Type type, size_t begin, size_t end, bool escaped = false);
  bool recorded() const { return static_cast<int>(open_.size()) <= fold_depth_; }
  [[noreturn]] void syntax_error(std::string_view expected) const;

  JsonDocument& document_;
  const char* const begin_;
  const char* const end_;
  const char* at_;
  const int fold_depth_;

  struct Open {
    uint32_t token;
    Json::Type type;
  };
  std::vector<Open> open_;
};

}  // namespace metaprof
