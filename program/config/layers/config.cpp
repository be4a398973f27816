#include "program/config/layers/config.h"

#include <fmt/format.h>

#include "core/error.h"

namespace metaprof {
namespace {

// Products of two sizes stay within 64 bits, and no table has more rows.
constexpr int64_t kMostSize = int64_t{1} << 31;
// Each layer is some dozens of calls that are kept in memory.
constexpr int64_t kMostLayers = 4096;

const JsonDocument& empty_object() {
  static const JsonDocument document("{}", "config.json");
  return document;
}

}  // namespace

Json Config::find(Keys keys) const {
  for (const std::string_view key : keys)
    if (const Json value = object_.find(key)) return value;
  return {};
}

int64_t Config::number(Json value, int64_t least, int64_t most) const {
  const auto wrong = [&] {
    fail("{}: expected a whole number from {} to {}, got {}", value.where(), least, most, value.written());
  };
  if (value.type() != Json::Type::number) wrong();
  const double real = value.real();
  if (real < static_cast<double>(least) || real > static_cast<double>(most) ||
      real != static_cast<double>(static_cast<int64_t>(real)))
    wrong();
  return static_cast<int64_t>(real);
}

int64_t Config::size(Keys keys, int64_t otherwise) const { return given_size(keys).value_or(otherwise); }

std::optional<int64_t> Config::given_size(Keys keys) const {
  const Json value = find(keys);
  if (!value) return std::nullopt;
  return number(value, 1, kMostSize);
}

int64_t Config::count(Keys keys, int64_t otherwise) const {
  const Json value = find(keys);
  return value ? number(value, 0, kMostSize) : otherwise;
}

int64_t Config::layers(Keys keys, int64_t otherwise) const {
  const Json value = find(keys);
  return value ? number(value, 1, kMostLayers) : otherwise;
}

double Config::real(Keys keys, double otherwise) const { return given_real(keys).value_or(otherwise); }

std::optional<double> Config::given_real(Keys keys) const {
  const Json value = find(keys);
  if (!value) return std::nullopt;
  if (value.type() != Json::Type::number)
    fail("{}: expected a number, got {}", value.where(), value.written());
  return value.real();
}

bool Config::flag(Keys keys, bool otherwise) const {
  const Json value = find(keys);
  if (!value) return otherwise;
  if (value.type() != Json::Type::boolean)
    fail("{}: expected true or false, got {}", value.where(), value.written());
  return value.boolean();
}

std::string Config::text(Keys keys, std::string_view otherwise) const {
  const Json value = find(keys);
  return value ? value.string() : std::string(otherwise);
}

std::vector<std::string> Config::texts(std::string_view key) const {
  std::vector<std::string> texts;
  const Json value = object_.find(key);
  if (value && value.is_string()) return {value.string()};  // a text alone is a list of one
  if (value) value.for_each([&](Json element) { texts.push_back(element.string()); });
  return texts;
}

std::vector<int64_t> Config::integers(std::string_view key) const {
  std::vector<int64_t> integers;
  if (const Json list = object_.find(key))
    list.for_each([&](Json element) { integers.push_back(number(element, 0, kMostSize)); });
  return integers;
}

bool Config::is_null(std::string_view key) const {
  bool null = false;
  object_.for_each_member([&](std::string_view name, Json value) { null |= name == key && value.is_null(); });
  return null;
}

Config Config::nested(std::string_view key) const {
  const Json value = object_.find(key);
  if (!value) return Config(empty_object().root());
  if (!value.is_object()) reject(key, "expected an object");
  return Config(object_.at(key));
}

int64_t Config::members(std::string_view key) const {
  const Json value = object_.find(key);
  return value ? static_cast<int64_t>(value.count()) : 0;
}

int64_t Config::divided(std::string_view key, int64_t whole, std::string_view by, int64_t parts) const {
  if (whole % parts != 0) reject(key, fmt::format("{} is no multiple of {} {}", whole, by, parts));
  return whole / parts;
}

void Config::reject(std::string_view key, std::string_view message) const {
  fail("{}: {}: {}", where(), key, message);
}

}  // namespace metaprof
