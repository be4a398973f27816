#include "estimate/prepare/sizes.h"

#include <charconv>
#include <utility>

#include "core/error.h"

namespace metaprof {

Bytes parse_size(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                                   {"B", 1},
                                                                   {"KiB", 1024.},
                                                                   {"MiB", 1048576.},
                                                                   {"GiB", 1073741824.},
                                                                   {"TiB", 1099511627776.},
                                                                   {"kB", 1e3},
                                                                   {"MB", 1e6},
                                                                   {"GB", 1e9},
                                                                   {"TB", 1e12}};
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(code == std::errc() ? static_cast<size_t>(end - text.data()) : 0);
  if (code == std::errc()) {
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    if (unit.empty() && number > 0 && number < 1048576)
      fail("'{}' has no unit; write {}GiB, or {}B", text, text, text);
    for (const auto& [name, size] : kUnits)
      if (name == unit && number * size >= 1 && number * size <= 1125899906842624.)
        return {static_cast<int64_t>(number * size)};
  }
  fail("'{}' is not a size; expected a number and a unit, as 40GiB (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)",
       text);
}

double parse_share(std::string_view text, std::string_view option) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || !(value >= 0 && value <= 1e6) || (!unit.empty() && unit != "%"))
    fail("{}: '{}' is no share; write 1% or 0.01", option, text);
  return unit == "%" ? value / 100 : value;
}

}  // namespace metaprof
