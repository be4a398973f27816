#pragma once
// A member of a JSON document that somebody wrote by hand or with a tool of their own: messages say where it
// stands, what is expected, what is there, and who writes such files.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/formats/json.h"

namespace metaprof {

class Member {
 public:
  /// `hint`: who writes such files, for members that are missing.
  Member(Json value, const char* hint) : value_(value), hint_(hint) {}

  /// Errors of all below: the member is not what is asked for.
  [[noreturn]] void reject(std::string_view expected) const;
  Member at(std::string_view key) const;
  /// Nothing if it is missing or null.
  std::optional<Member> find(std::string_view key) const;
  std::string text() const;
  int64_t count() const;  ///< a whole number of at least 0
  double real() const;
  bool boolean() const;
  std::optional<std::string> optional_text(std::string_view key) const;
  std::optional<int64_t> optional_count(std::string_view key) const;
  std::optional<double> optional_real(std::string_view key) const;
  const Json& json() const { return value_; }
  bool is_object() const { return value_.is_object(); }
  bool empty() const { return value_.count() == 0; }
  /// Elements of a list, and members of an object, in the order of the document.
  void for_each(const std::function<void(const Member& element)>& function) const;
  void for_each_member(
      const std::function<void(const std::string& name, const Member& member)>& function) const;
  /// "gpt2.json: config.steps"
  std::string where() const { return value_.where(); }

 private:
  Json value_;
  const char* hint_;
};

/// A JSON text with its document.
class JsonText {
 public:
  /// `name`: what messages call it. Errors: as JsonDocument, with the hint.
  JsonText(std::string text, const std::string& name, const char* hint);
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  Member root() const { return {document_->root(), hint_}; }

 private:
  std::string text_;
  const char* hint_;
  std::optional<JsonDocument> document_;
};

}  // namespace metaprof
