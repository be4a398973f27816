#pragma once
// Python's subscripts in a line of source: `x[:, 0]` takes all of the first dimension and one of the second.

#include <cstdint>
#include <string_view>
#include <vector>

namespace metaprof {

enum class SubscriptItem : uint8_t {
  everything,  ///< `:`, `::`, `0:`, `::1`
  range,       ///< any other slice with a colon: `:n`, `1:`
  new_axis,    ///< `None`
  ellipsis,    ///< `...`
  number,      ///< `0`, `-1`
  expression,  ///< anything else: a number, a tensor, a slice object
};

/// What stands between one pair of brackets, in order.
using Subscript = std::vector<SubscriptItem>;

/// All subscripts of a line, in the order in which Python evaluates them: by their closing brackets. Brackets
/// that make a list are none; a subscript that goes on in the next line is left out.
std::vector<Subscript> subscripts_in(std::string_view code);

}  // namespace metaprof
