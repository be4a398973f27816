#pragma once
// How reports write numbers and names.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shown_text.h"

namespace metaprof {

/// "945981952 B", "902.2 MiB": with the largest binary unit that leaves at least one digit before the point.
std::string human_bytes(int64_t bytes);
/// "945 981 952": groups of three digits, to be read by people only.
std::string grouped(int64_t number);

/// A unit that all numbers of a table's column share.
struct Unit {
  std::string_view name;  ///< "MiB"
  double size = 1;
  int decimals = 0;
};
/// The smallest unit in which the largest of the numbers has at most five digits before the point.
Unit unit_for_bytes(int64_t largest);
Unit unit_for_flops(int64_t largest);
/// A number in that unit; an exact zero is "0".
std::string in_unit(int64_t number, const Unit& unit);

/// What a name from a model or program may take of a line.
inline constexpr size_t kMostCharactersOfName = 60;
/// An empty line and a heading, bold on a terminal with colours.
std::string heading(std::string_view text, bool colour);

}  // namespace metaprof
