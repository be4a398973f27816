#pragma once
// Choices of one case. A case is made anew from its seed and number wherever it is wanted: in the process that runs it, and
// in the one that writes it down.

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace metaprof {

class Random {
 public:
  Random(uint64_t seed, uint64_t number) {
    std::seed_seq words{uint32_t(seed), uint32_t(seed >> 32), uint32_t(number), uint32_t(number >> 32)};
    engine_.seed(words);
  }

  /// 0 for 0.
  size_t below(size_t count) { return count == 0 ? 0 : engine_() % count; }
  /// True once in so many times.
  bool once_in(size_t times) { return below(times) == 0; }
  template <class Element>
  Element one_of(std::initializer_list<Element> values) {
    return *(values.begin() + below(values.size()));
  }
  template <class Container>
  const auto& one_of(const Container& values) {
    return *std::next(std::begin(values), static_cast<std::ptrdiff_t>(below(std::size(values))));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace metaprof
