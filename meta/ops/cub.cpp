#include "meta/ops/cub.h"

#include <algorithm>

namespace metaprof {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Every allocation within the temporary storage begins at a multiple of 256 bytes, and the storage itself may
// not (cub/util_device.cuh, AliasTemporaries).
int64_t aligned(int64_t bytes) { return divide_up(bytes, 256) * 256; }
constexpr int64_t kSlack = 255;

// Tile states of a decoupled look-back: one descriptor per tile and 32 for padding
// (cub/agent/single_pass_scan_operators.cuh). Values of a primitive type share a word with their status,
// others stand in arrays of their own. They are one allocation within the operator's, with slack of its own.
int64_t tile_states(int64_t tiles, int64_t value_bytes, bool primitive) {
  const int64_t states = tiles + 32;
  if (primitive) return aligned(aligned(states * 2 * value_bytes) + kSlack);
  return aligned(aligned(states * 4) + 2 * aligned(states * value_bytes) + kSlack);
}

}  // namespace

int64_t cub_sort_bytes(const DeviceProfile& device, int64_t count, int64_t key_bytes, int64_t value_bytes,
                       int64_t bits) {
  // cub/device/dispatch/tuning/tuning_radix_sort.cuh: one block of 256 threads sorts what fits 19 registers
  // per thread.
  const int64_t dominant = std::max(key_bytes, value_bytes);
  const int64_t single_tile = 256 * std::max<int64_t>(1, 19 * 4 / std::max<int64_t>(4, dominant));
  if (count <= single_tile) return 1;
  // One-sweep: a second buffer for keys and values, bins of 256 digits per pass, look-back per block,
  // counters (rule R4 and shapes/order/sort).
  constexpr int64_t digits = 256;
  const int64_t passes = divide_up(bits, 8);
  const bool hopper = device.sm >= 90;
  const int64_t tile = key_bytes == 8 ? (hopper ? 4608 : 3840) : (hopper ? 5376 : 4608);
  const int64_t blocks = divide_up(count, tile);
  return kSlack + aligned(8 * digits * passes) + aligned(4 * digits * blocks) + aligned(count * key_bytes) +
         aligned(count * value_bytes) + aligned(4 * passes);
}

bool cub_is_primitive(DType dtype) { return !is_reduced_floating(dtype) && !is_complex(dtype); }

int64_t cub_scan_bytes(int64_t count, int64_t accumulator_bytes, bool primitive) {
  // Sizes without a tuned policy: 128 threads of 15 four-byte elements, fewer of larger ones, at most 30.
  const int64_t items = std::clamp<int64_t>(15 * 4 / accumulator_bytes, 1, 30);
  return kSlack + tile_states(divide_up(count, 128 * items), accumulator_bytes, primitive);
}

int64_t cub_select_bytes(int64_t count) {
  // Recorded: 1279 bytes up to 32 768 elements, that is at most 16 tiles.
  return kSlack + tile_states(divide_up(count, 2048), 8, true);
}

}  // namespace metaprof
