#pragma once
// A member of a JSON document that somebody wrote, with the place where it stands for messages. It is
// included only where such documents are read.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace metaprof {

class Member {
 public:
  /// `file`: what messages call it; `hint`: who writes such files, for members that are missing.
  static Member root(const nlohmann::json& value, const std::string& file, const char* hint) {
    return Member(value, file, ": ", hint);
  }

  /// Errors of all below: the member is not what is asked for.
  [[noreturn]] void reject(std::string_view expected) const {
    const std::string found = value_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fail("{}: expected {}, got {}", where_, expected, found.substr(0, 60));
  }
  Member at(const std::string& key) const {
    if (!value_.is_object()) reject("an object");
    const auto found = value_.find(key);
    if (found == value_.end()) fail("{}: '{}' is missing; {}", where_, key, hint_);
    return Member(*found, where_ + separator_ + key, ".", hint_);
  }
  /// Nothing if it is missing or null.
  std::optional<Member> find(const std::string& key) const {
    if (!value_.is_object()) reject("an object");
    const auto found = value_.find(key);
    if (found == value_.end() || found->is_null()) return std::nullopt;
    return Member(*found, where_ + separator_ + key, ".", hint_);
  }
  std::string text() const {
    if (!value_.is_string()) reject("a text");
    return value_.get<std::string>();
  }
  int64_t count() const {
    if (!value_.is_number_integer() || value_.get<int64_t>() < 0) reject("a whole number of at least 0");
    return value_.get<int64_t>();
  }
  double real() const {
    if (!value_.is_number()) reject("a number");
    return value_.get<double>();
  }
  bool boolean() const {
    if (!value_.is_boolean()) reject("true or false");
    return value_.get<bool>();
  }
  std::optional<std::string> optional_text(const std::string& key) const {
    const auto member = find(key);
    return member ? std::optional(member->text()) : std::nullopt;
  }
  std::optional<int64_t> optional_count(const std::string& key) const {
    const auto member = find(key);
    return member ? std::optional(member->count()) : std::nullopt;
  }
  std::optional<double> optional_real(const std::string& key) const {
    const auto member = find(key);
    return member ? std::optional(member->real()) : std::nullopt;
  }
  template <class Function>  // Function(Member element)
  void for_each(Function function) const {
    if (!value_.is_array()) reject("a list");
    for (size_t i = 0; i < value_.size(); ++i)
      function(Member(value_[i], where_ + "[" + std::to_string(i) + "]", ".", hint_));
  }
  template <class Function>  // Function(std::string name, Member member)
  void for_each_member(Function function) const {
    if (!value_.is_object()) reject("an object");
    for (const auto& [name, value] : value_.items())
      function(name, Member(value, where_ + separator_ + name, ".", hint_));
  }
  bool empty() const { return value_.empty(); }
  /// "gpt2.json: config.steps"
  const std::string& where() const { return where_; }

 private:
  Member(const nlohmann::json& value, std::string where, const char* separator, const char* hint)
      : value_(value), where_(std::move(where)), separator_(separator), hint_(hint) {}

  const nlohmann::json& value_;
  std::string where_;
  const char* separator_;  // before the name of a member
  const char* hint_;
};

}  // namespace metaprof
