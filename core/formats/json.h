#pragma once
// A JSON text, checked once from end to end and then read in place: no tree of objects is built. Graphs are
// files of megabytes of which a third is stack traces that repeat, and reading one is to take milliseconds.
//
// The text is checked without recursion: syntax, UTF-8, depth of nesting. A document then remembers where each value
// begins and ends.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace metaprof {

class JsonDocument;

/// A value in a document. Cheap to copy; valid as long as its document.
///
/// Asking for another type than the value has is an Error with the file, the path of the value and what was
/// found: `a.pt2: models/model.json: graph_module.graph.nodes: expected a list, got an object`.
class Json {
 public:
  enum class Type : uint8_t { null, boolean, number, string, list, object };

  Json() = default;  ///< no value: what `find` gives for a missing member
  inline Type type() const;
  bool is_null() const { return type() == Type::null; }
  bool is_string() const { return type() == Type::string; }
  bool is_list() const { return type() == Type::list; }
  bool is_object() const { return type() == Type::object; }

  /// The member of an object; an Error if it is missing.
  Json at(std::string_view key) const;
  /// The same; nothing if it is missing or null.
  Json find(std::string_view key) const;
  explicit operator bool() const { return document_ != nullptr; }

  /// The only member of an object: its key and its value. This is how unions are written.
  std::pair<std::string_view, Json> only_member() const;

  template <class Function>  // Function(Json element)
  void for_each(Function function) const;
  template <class Function>  // Function(std::string_view key, Json value); keys are not unescaped
  void for_each_member(Function function) const;
  size_t count() const;  ///< elements or members

  bool boolean() const;
  int64_t integer() const;
  /// Numbers, and "Infinity", "-Infinity", "NaN": the framework writes those as strings.
  double real() const;
  std::string string() const;
  /// The string as it is written, escapes included.
  inline std::string_view raw_string() const;
  /// The whole value as it is written.
  inline std::string_view text() const;

  /// … with the quotes of a string.
  std::string_view written() const;

  /// "graph_module.graph.nodes[3].target"
  std::string path() const;
  /// "a.pt2: models/model.json: graph_module.graph": the origin, then the path.
  std::string where() const;
  /// Throws an Error: origin, path, message.
  [[noreturn]] void reject(std::string_view message) const;

 private:
  friend class JsonDocument;
  Json(const JsonDocument* document, uint32_t token) : document_(document), token_(token) {}
  void expect(Type wanted) const {
    if (type() != wanted) reject_type(wanted);
  }
  [[noreturn]] void reject_type(Type wanted) const;
  inline uint32_t next() const;

  const JsonDocument* document_ = nullptr;
  uint32_t token_ = 0;
};

/// What a document remembers of a value, or of a member's key. Those of a text stand in the text's order.
struct JsonToken {
  uint32_t begin, end;  ///< in the text; strings without their quotes
  uint32_t next;        ///< the token after this value
  Json::Type type;
  bool escaped;  ///< a string that may hold backslashes
};

class JsonDocument {
 public:
  /// Checks `text`, which must outlive the document. `origin` begins every message.
  JsonDocument(std::string_view text, std::string origin);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  Json root() const { return {this, 0}; }

  /// Lists and objects nested deeper than this are refused.
  static constexpr int kMaxDepth = 1000;

 private:
  friend class Json;
  std::string path_of(uint32_t token) const;

  std::string_view text_;
  std::string origin_;
  std::unique_ptr<JsonToken[]> tokens_;
};

inline Json::Type Json::type() const { return document_->tokens_[token_].type; }
inline uint32_t Json::next() const { return document_->tokens_[token_].next; }

inline std::string_view Json::text() const {
  const JsonToken& token = document_->tokens_[token_];
  return {document_->text_.data() + token.begin, token.end - token.begin};
}

inline std::string_view Json::raw_string() const {
  expect(Type::string);
  return text();
}

template <class Function>
void Json::for_each(Function function) const {
  expect(Type::list);
  const uint32_t end = next();
  for (Json element(document_, token_ + 1); element.token_ != end; element.token_ = element.next())
    function(element);
}

template <class Function>
void Json::for_each_member(Function function) const {
  expect(Type::object);
  const uint32_t end = next();
  for (Json key(document_, token_ + 1); key.token_ != end;) {
    const Json value(document_, key.token_ + 1);
    function(key.raw_string(), value);
    key.token_ = value.next();
  }
}

}  // namespace metaprof
