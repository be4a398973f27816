#pragma once
// What a captured function does to an input, by whose memory the input is.

#include <cstdint>
#include <string_view>

namespace metaprof {

enum class MutationKind : uint8_t {
  none,      ///< (a) nobody writes to it
  state,     ///< (b) a parameter or buffer: its address stays
  earlier,   ///< (c) made by an earlier captured graph: its address belongs to the pool
  unmanaged  ///< (d) anything else: a replay would write to the copy in the pool, not to the tensor
};
/// "a", "b", "c", "d"
constexpr std::string_view letter_of(MutationKind kind) {
  constexpr std::string_view letters[] = {"a", "b", "c", "d"};
  return letters[static_cast<size_t>(kind)];
}

}  // namespace metaprof
