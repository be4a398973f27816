#include "capture/emulator/nccl/reduction.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace metaprof::emulator::nccl {
namespace {

enum Operation : int { sum = 0, product = 1, largest = 2, smallest = 3, average = 4 };

template <class T>
T combine(T a, T b, int operation) {
  switch (operation) {
    case product: return T(a * b);
    case largest: return std::max(a, b);
    case smallest: return std::min(a, b);
    default: return T(a + b);
  }
}

template <class T>
std::string reduce_as(const std::vector<std::string>& values, int operation) {
  std::string out = values[0];
  for (size_t at = 0; at + sizeof(T) <= out.size(); at += sizeof(T)) {
    T result;
    std::memcpy(&result, out.data() + at, sizeof result);
    for (size_t i = 1; i < values.size(); ++i) {
      T other;
      std::memcpy(&other, values[i].data() + at, sizeof other);
      result = combine(result, other, operation);
    }
    if (operation == average) result = T(result / T(values.size()));
    std::memcpy(out.data() + at, &result, sizeof result);
  }
  return out;
}

}  // namespace

size_t element_bytes(int type) {
  constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < int(std::size(sizes)) ? sizes[type] : 1;
}

std::optional<std::string> reduce(const std::vector<std::string>& values, int type, int operation) {
  if (operation < sum || operation > average) return {};
  switch (type) {
    case 0: return reduce_as<int8_t>(values, operation);
    case 1: return reduce_as<uint8_t>(values, operation);
    case 2: return reduce_as<int32_t>(values, operation);
    case 3: return reduce_as<uint32_t>(values, operation);
    case 4: return reduce_as<int64_t>(values, operation);
    case 5: return reduce_as<uint64_t>(values, operation);
    case 7: return reduce_as<float>(values, operation);
    case 8: return reduce_as<double>(values, operation);
    default: return {};
  }
}

}  // namespace metaprof::emulator::nccl
