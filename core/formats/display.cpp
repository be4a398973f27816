#include "core/formats/display.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

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

std::string heading(std::string_view text, bool colour) {
  return colour ? fmt::format("\n\x1b[1m{}\x1b[0m\n", text) : fmt::format("\n{}\n", text);
}

}  // namespace metaprof
