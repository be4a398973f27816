#include "program/text/constant_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/shown_text.h"
#include "program/program.h"

namespace metaprof {
namespace {

template <class List, class Text>
std::string list_text(std::string_view kind, const List& list, Text text) {
  if (list.empty()) return std::string(kind) + "[]";
  std::string all = "[";
  for (const auto& element : list) all += (all.size() > 1 ? ", " : "") + text(element);
  return all + "]";
}

std::string boolean_text(bool value) { return value ? "True" : "False"; }

std::string device_text(Device device) {
  return "device(" + (device == kModelDevice ? "model" : to_string(device)) + ")";
}

}  // namespace

std::string quoted_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + shown(escaped) + '"';
}

std::string word_text(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, is_of_plain_word);
  return plain ? std::string(word) : quoted_text(word);
}

std::string real_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string constant_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return "None";
    case Value::Kind::integer: return std::to_string(value.integer());
    case Value::Kind::real: return real_text(value.real());
    case Value::Kind::boolean: return boolean_text(value.boolean());
    case Value::Kind::complex:
      return "complex(" + real_text(value.reals()[0]) + ", " + real_text(value.reals()[1]) + ")";
    case Value::Kind::string: return quoted_text(value.string());
    case Value::Kind::integers:
      return list_text("", value.integers(), [](int64_t number) { return std::to_string(number); });
    case Value::Kind::reals: return list_text("reals", value.reals(), real_text);
    case Value::Kind::booleans: return list_text("booleans", value.booleans(), boolean_text);
    case Value::Kind::device: return device_text(value.device());
    case Value::Kind::generator: return "generator";
    case Value::Kind::tensor:
    case Value::Kind::tensors: break;
  }
  fail("a constant of a program is {}, which has no text", to_string(value.kind()));
}

}  // namespace metaprof
