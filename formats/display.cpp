#include "formats/display.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "formats/utf8.h"

namespace metaprof {
namespace {

constexpr std::array<Unit, 5> kByteUnits = {{{"B", 1, 0},
                                             {"KiB", 1024., 1},
                                             {"MiB", 1024. * 1024, 1},
                                             {"GiB", 1024. * 1024 * 1024, 1},
                                             {"TiB", 1024. * 1024 * 1024 * 1024, 1}}};
constexpr std::array<Unit, 6> kFlopUnits = {{{"FLOP", 1, 0},
                                             {"kFLOP", 1e3, 2},
                                             {"MFLOP", 1e6, 2},
                                             {"GFLOP", 1e9, 2},
                                             {"TFLOP", 1e12, 2},
                                             {"PFLOP", 1e15, 2}}};

Unit unit_for(std::span<const Unit> units, int64_t largest) {
  for (const Unit& unit : units)
    if (std::abs(static_cast<double>(largest)) / unit.size < 99999.5) return unit;
  return units.back();
}

// Bytes of the character at the beginning of `text`; 0 if there is none, or one that moves a terminal's cursor.
size_t printable_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = utf8_length(text);
  const bool control = first < ' ' || first == 0x7f ||
                       (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);  // C1
  return control ? 0 : length;
}

}  // namespace

std::string human_bytes(int64_t bytes) {
  const Unit* best = &kByteUnits[0];
  for (const Unit& unit : kByteUnits)
    if (std::abs(static_cast<double>(bytes)) >= unit.size) best = &unit;
  return fmt::format("{:.{}f} {}", static_cast<double>(bytes) / best->size, best->decimals, best->name);
}

std::string grouped(int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ' ';
    text += digits[i];
  }
  return text;
}

Unit unit_for_bytes(int64_t largest) { return unit_for(kByteUnits, largest); }
Unit unit_for_flops(int64_t largest) { return unit_for(kFlopUnits, largest); }

std::string in_unit(int64_t number, const Unit& unit) {
  if (number == 0) return "0";
  return fmt::format("{:.{}f}", static_cast<double>(number) / unit.size, unit.decimals);
}

std::string shown(std::string_view text, size_t most) {
  std::vector<std::string> characters;
  for (size_t i = 0; i < text.size();) {
    const size_t length = printable_length(text.substr(i));
    if (length == 0) {
      for (const char c : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i])))
        characters.emplace_back(1, c);
      ++i;
    } else {
      characters.emplace_back(text.substr(i, length));
      i += length;
    }
  }
  std::string result;
  const size_t head = (most - 1) / 2, tail = most - 1 - head;
  for (size_t i = 0; i < characters.size(); ++i) {
    if (characters.size() > most && i == head) {
      result += "…";
      i = characters.size() - tail;
    }
    result += characters[i];
  }
  return result;
}

std::string heading(std::string_view text, bool colour) {
  return colour ? fmt::format("\n\x1b[1m{}\x1b[0m\n", text) : fmt::format("\n{}\n", text);
}

size_t width_of(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

}  // namespace metaprof
