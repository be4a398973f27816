#include "core/formats/json_member.h"

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof {

void Member::reject(std::string_view expected) const {
  fail("{}: expected {}, got {}", where(), expected, value_.written().substr(0, 60));
}

Member Member::at(std::string_view key) const {
  if (!value_.is_object()) reject("an object");
  const auto found = find(key);
  if (!found) fail("{}: '{}' is missing; {}", where(), key, hint_);
  return *found;
}

std::optional<Member> Member::find(std::string_view key) const {
  if (!value_.is_object()) reject("an object");
  const Json found = value_.find(key);
  return found ? std::optional(Member(found, hint_)) : std::nullopt;
}

std::string Member::text() const {
  if (!value_.is_string()) reject("a text");
  return value_.string();
}

int64_t Member::count() const {
  const auto number = value_.type() == Json::Type::number ? whole_number(value_.text()) : std::nullopt;
  if (!number || *number < 0) reject("a whole number of at least 0");
  return *number;
}

double Member::real() const {
  if (value_.type() != Json::Type::number) reject("a number");
  return value_.real();
}

bool Member::boolean() const {
  if (value_.type() != Json::Type::boolean) reject("true or false");
  return value_.boolean();
}

std::optional<std::string> Member::optional_text(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(member->text()) : std::nullopt;
}

std::optional<int64_t> Member::optional_count(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(member->count()) : std::nullopt;
}

std::optional<double> Member::optional_real(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(member->real()) : std::nullopt;
}

void Member::for_each(const std::function<void(const Member&)>& function) const {
  if (!value_.is_list()) reject("a list");
  value_.for_each([&](const Json& element) { function(Member(element, hint_)); });
}

void Member::for_each_member(const std::function<void(const std::string&, const Member&)>& function) const {
  if (!value_.is_object()) reject("an object");
  value_.for_each_member(
      [&](std::string_view key, const Json& value) { function(std::string(key), Member(value, hint_)); });
}

JsonText::JsonText(std::string text, const std::string& name, const char* hint)
    : text_(std::move(text)), hint_(hint) {
  try {
    document_.emplace(text_, name);
  } catch (const Error& error) {
    fail("{}; {}", error.what(), hint);
  }
}

}  // namespace metaprof
