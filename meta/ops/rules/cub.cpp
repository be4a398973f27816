#include "meta/ops/rules/cub.h"

#include <algorithm>

#include "core/rounding.h"

namespace metaprof {
namespace {

// Every allocation within the temporary storage begins at a multiple of 256 bytes, and the storage itself may
// not (cub/util_device.cuh, AliasTemporaries).
int64_t aligned(int64_t bytes) { return divide_up(bytes, 256) * 256; }
constexpr int64_t kSlack = 255;
// CUB never asks for 0 bytes: that would mean "how many?".
constexpr int64_t kNothing = 1;

// Tile states of a decoupled look-back: one descriptor per tile and 32 for padding
// (CUB, single_pass_scan_operators.cuh). Values of a primitive type share a word with their status,
// others stand in arrays of their own. They are one allocation within the operator's, with slack of its own.
int64_t tile_states(int64_t tiles, int64_t value_bytes, bool primitive) {
  const int64_t states = tiles + 32;
  if (primitive) return aligned(aligned(states * 2 * value_bytes) + kSlack);
  return aligned(aligned(states * 4) + 2 * aligned(states * value_bytes) + kSlack);
}

struct Tile {
  int64_t threads, items;
  constexpr int64_t size() const { return threads * items; }
};

// cub/util_arch.cuh: policies are written for four-byte elements.
Tile register_bound(int64_t threads, int64_t items, int64_t bytes) {
  const int64_t scaled = std::max<int64_t>(1, items * 4 / std::max<int64_t>(4, bytes));
  return {std::min(threads, divide_up(int64_t{48} * 1024, bytes * scaled * 32) * 32), scaled};
}

// tuning_radix_sort.cuh, sm90_small_key_tuning: keys of one and two bytes with 64-bit counts.
Tile small_key_tile(int64_t key_bytes, int64_t value_bytes) {
  const bool byte = key_bytes == 1;
  switch (value_bytes) {
    case 0: return {512, 19};
    case 1: return byte ? Tile{448, 16} : Tile{384, 16};
    case 2: return byte ? Tile{512, 14} : Tile{448, 16};
    case 4: return byte ? Tile{512, 14} : Tile{512, 12};
    case 8: return byte ? Tile{384, 18} : Tile{512, 23};
    default: return byte ? Tile{512, 22} : Tile{576, 22};
  }
}

// tuning_radix_sort.cuh, OnesweepPolicy with 64-bit counts.
Tile one_sweep_tile(const Hardware& device, int64_t key_bytes, int64_t value_bytes) {
  const int64_t dominant = std::max(key_bytes, value_bytes);
  const bool keys_only = value_bytes == 0;
  if (device.sm < 90) return register_bound(384, key_bytes == 4 && !keys_only ? 17 : 21, dominant);
  if (key_bytes < 4) {
    const Tile tile = small_key_tile(key_bytes, value_bytes);
    return register_bound(tile.threads, tile.items, dominant);
  }
  if (key_bytes == 4) return register_bound(384, keys_only ? 19 : value_bytes < 8 ? 17 : 29, dominant);
  return register_bound(384, value_bytes < 8 ? 30 : 24, dominant);
}

// Before Hopper short keys are sorted in passes of 7 bits (one-byte keys: 5) with a histogram per block
// (dispatch_radix_sort.cuh, InvokePasses): a spine of counts for the largest grid and one tile of its scan,
// then a second buffer. The largest grid is that of the alternate policy's smaller blocks.
int64_t passes_bytes(const Hardware& device, int64_t count, int64_t key_bytes, int64_t value_bytes) {
  const int64_t digits = key_bytes > 1 ? 128 : 32, threads = key_bytes > 1 ? 256 : 128;
  const int64_t grid = device.multiprocessors * (device.threads_per_multiprocessor / threads) * 5;
  const int64_t scan_tile = register_bound(512, 23, 8).size();
  return kSlack + aligned((grid * digits + scan_tile) * 8) + aligned(count * key_bytes) +
         aligned(count * value_bytes);
}

}  // namespace

bool cub_is_primitive(DType dtype) { return !is_reduced_floating(dtype) && !is_complex(dtype); }

int64_t cub_sort_bytes(const Hardware& device, int64_t count, int64_t key_bytes, int64_t value_bytes,
                       int64_t bits) {
  const int64_t dominant = std::max(key_bytes, value_bytes);
  if (count <= register_bound(256, 19, dominant).size()) return kNothing;  // one block sorts it
  if (device.sm < 90 && key_bytes < 4) return passes_bytes(device, count, key_bytes, value_bytes);
  // dispatch_radix_sort.cuh, InvokeOnesweep: bins of 256 digits per pass, look-back per block, a second
  // buffer for keys and values, counters. Portions of 2²⁸ elements follow each other.
  constexpr int64_t digits = 256;
  const int64_t passes = divide_up(bits, 8), tile = one_sweep_tile(device, key_bytes, value_bytes).size();
  const int64_t portion = ((int64_t{1} << 28) - 1) / tile * tile, portions = divide_up(count, portion);
  const int64_t blocks = divide_up(std::min(count, portion), tile);
  const int64_t second = passes > 1 ? aligned(count * key_bytes) + aligned(count * value_bytes) : 0;
  return kSlack + aligned(8 * digits * passes * portions) + aligned(4 * digits * blocks) + second +
         aligned(4 * passes * portions);
}

int64_t cub_segmented_sort_bytes(int64_t count, int64_t key_bytes, int64_t value_bytes) {
  return kSlack + aligned(count * key_bytes) + aligned(count * value_bytes);
}

int64_t cub_scan_bytes(int64_t count, int64_t accumulator_bytes, bool primitive) {
  // tuning_scan.cuh: tuned sizes are for CUB's own operators; others take 128 threads of 15 four-byte
  // elements, fewer of larger ones, at most 30.
  const int64_t items = std::clamp<int64_t>(int64_t{15} * 4 / accumulator_bytes, 1, 30);
  return kSlack + tile_states(divide_up(count, 128 * items), accumulator_bytes, primitive);
}

int64_t cub_scan_by_key_bytes(const Hardware& device, int64_t count, int64_t value_bytes) {
  // tuning_scan_by_key.cuh. Descriptors of 16 bytes (value, flag, status), and a key per tile.
  int64_t tile = Tile{256, 9}.size();
  if (device.sm >= 90) {
    tile = value_bytes == 8 ? 224 * 11 : 288 * 14;
  } else if (device.sm >= 80 && device.sm < 86) {
    tile = value_bytes == 8 ? 224 * 10 : 256 * 15;
  }
  const int64_t tiles = divide_up(count, tile);
  return kSlack + aligned(16 * (tiles + 32)) + aligned(value_bytes * (tiles + 1));
}

int64_t cub_unique_by_key_bytes(const Hardware& device, int64_t count, int64_t key_bytes) {
  // tuning_unique_by_key.cuh, values of 4 bytes.
  int64_t tile = 64 * std::clamp<int64_t>(int64_t{11} * 4 / key_bytes, 1, 11);
  if (device.sm >= 90) {
    tile = key_bytes == 8 ? 640 * 7 : 512 * 14;
  } else if (device.sm >= 80 && device.sm < 86) {
    tile = key_bytes == 8 ? 256 * 7 : 256 * 11;
  }
  return kSlack + tile_states(divide_up(count, tile), 8, true);
}

// thrust/system/cuda/detail/adjacent_difference.h: nothing but room to align it.
int64_t thrust_adjacent_difference_bytes() { return kSlack; }

int64_t thrust_sum_bytes(const Hardware& device, int64_t count) {
  // tuning_scan.cuh, sums of 8 bytes.
  int64_t tile = Tile{128, 7}.size();
  if (device.sm >= 90) {
    tile = Tile{224, 12}.size();
  } else if (device.sm >= 80 && device.sm < 86) {
    tile = Tile{288, 11}.size();
  }
  return kSlack + tile_states(divide_up(count, tile), 8, true);
}

int64_t thrust_unique_bytes(int64_t count) {
  // thrust/system/cuda/detail/unique.h: a kernel of its own, 64 threads of 11 four-byte elements on every device. The
  // count of what is left lies beside it.
  constexpr int64_t tile = Tile{64, 5}.size();
  return kSlack + aligned(kSlack + tile_states(divide_up(count, tile), 4, true)) + aligned(4);
}

int64_t thrust_unique_by_key_bytes(const Hardware& device, int64_t count) {
  // tuning_unique_by_key.cuh, keys and values of 8 bytes; thrust/system/cuda/detail/unique_by_key.h puts the count of
  // what is left beside it.
  int64_t tile = Tile{64, 5}.size();
  if (device.sm >= 90) {
    tile = Tile{448, 11}.size();
  } else if (device.sm >= 80 && device.sm < 86) {
    tile = Tile{192, 7}.size();
  }
  return kSlack + aligned(kSlack + tile_states(divide_up(count, tile), 4, true)) + aligned(4);
}

int64_t thrust_sort_by_key_bytes(int64_t count, int64_t key_bytes, int64_t value_bytes) {
  // dispatch_merge_sort.cuh: copies of keys and values, and where each tile's part of a merge begins.
  const int64_t tile = 256 * std::max<int64_t>(1, int64_t{17} * 4 / std::max<int64_t>(4, key_bytes));
  return kSlack + aligned(count * key_bytes) + aligned(count * value_bytes) +
         aligned(4 * (1 + divide_up(count, tile)));
}

int64_t thrust_reduce_by_key_bytes(int64_t count) {
  // dispatch_reduce_by_key.cuh: descriptors of 16 bytes; 256 threads of 9 on every device. reduce_by_key.h puts the count of
  // sums beside them.
  const int64_t states = aligned(16 * (divide_up(count, int64_t{256} * 9) + 32));
  return kSlack + aligned(kSlack + states) + aligned(8);
}

int64_t cub_unique_bytes(const Hardware& device, int64_t count, int64_t element_bytes) {
  // tuning_select_if.cuh, without flags.
  Tile tile = {128, std::clamp<int64_t>(int64_t{10} * 4 / element_bytes, 1, 10)};
  if (device.sm >= 90) {
    tile = element_bytes == 8 ? Tile{384, 11} : element_bytes == 4 ? Tile{384, 17} : Tile{256, 22};
  } else if (device.sm >= 80 && device.sm < 86) {
    tile = element_bytes == 8   ? Tile{192, 10}
           : element_bytes == 4 ? Tile{256, 18}
           : element_bytes == 2 ? Tile{576, 14}
                                : Tile{992, 20};
  }
  return kSlack + tile_states(divide_up(count, tile.size()), 4, true);
}

int64_t cub_run_length_bytes(int64_t count) {
  // dispatch_reduce_by_key.cuh: descriptors of 16 bytes; 128 threads of 6 by default.
  return kSlack + aligned(16 * (divide_up(count, Tile{128, 6}.size()) + 32));
}

int64_t cub_flagged_bytes(const Hardware& device, int64_t count) {
  // tuning_select_if.cuh, flagged, elements of 8 bytes.
  int64_t tile = Tile{128, 5}.size();
  if (device.sm >= 90) {
    tile = Tile{384, 11}.size();
  } else if (device.sm >= 80 && device.sm < 86) {
    tile = Tile{384, 6}.size();
  }
  return kSlack + tile_states(divide_up(count, tile), 4, true);
}

int64_t cub_sum_bytes(const Hardware& device, int64_t count) {
  // tuning_reduce.cuh: 256 threads of 16; dispatch_reduce.cuh: five blocks for each that fits the device.
  if (count <= Tile{256, 16}.size()) return kNothing;
  const int64_t blocks = int64_t{device.multiprocessors} * (device.threads_per_multiprocessor / 256) * 5;
  return kSlack + aligned(4 * blocks);
}

}  // namespace metaprof
