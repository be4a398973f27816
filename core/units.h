#pragma once
// Quantities that must not be mixed up: bytes are bytes, FLOPs count 2 per multiply-add. (Times are
// `double`, in seconds.)
// Sums that leave 64 bits are an error, never a wrapped number.

#include <compare>
#include <cstdint>

#include "core/error.h"

namespace metaprof {

template <class Unit>
struct Quantity {
  int64_t count = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): in what is generated
  friend auto operator<=>(Quantity, Quantity) = default;
  friend Quantity operator+(Quantity a, Quantity b) {
    Quantity sum;
    if (__builtin_add_overflow(a.count, b.count, &sum.count))
      fail("a sum of {} exceeds 64 bits: the sizes are too large", Unit::name);
    return sum;
  }
  friend Quantity operator-(Quantity a, Quantity b) { return {a.count - b.count}; }
  Quantity& operator+=(Quantity other) { return *this = *this + other; }
  Quantity& operator-=(Quantity other) { return *this = *this - other; }
};

struct BytesUnit {
  static constexpr const char* name = "bytes";
};
struct FlopsUnit {
  static constexpr const char* name = "FLOPs";
};
using Bytes = Quantity<BytesUnit>;
using Flops = Quantity<FlopsUnit>;

}  // namespace metaprof
