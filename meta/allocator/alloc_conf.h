#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace metaprof {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The options of PYTORCH_ALLOC_CONF (also PYTORCH_CUDA_ALLOC_CONF) of PyTorch 2.11 that decide device memory.
// Sizes are bytes.
struct AllocConf {
  // Blocks of at least this size are neither split nor given to smaller requests.
  std::uint64_t max_split_size = kUnlimited;
  // A request of at least max_split_size takes a cached block only if that is smaller than request + this.
  std::uint64_t max_non_split_rounding = 20 * kMiB;
  // Segment for requests between 1 and 10 MiB, and page of large expandable segments.
  std::uint64_t large_segment_size = 20 * kMiB;
  // Steps between two powers of two that sizes are rounded up to: entry i for sizes of [1 MiB << i, 2 MiB <<
  // i), the first also for smaller, the last also for larger ones. 0 and 1: only multiples of 512.
  std::array<std::uint64_t, 16> roundup_power2_divisions{};
  // Share of the allowed memory above which old cached blocks go back to the device; 0: never. Takes effect
  // only together with a memory fraction below 1.
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  // Share of the device's memory that the process may reserve.
  double per_process_memory_fraction = 1;

  // Whether blocks are cut as without options: the end of a block then follows from its request.
  bool cuts_blocks_by_default_rules() const;
};

// Parses `option:value,option:value`; blanks are ignored, an empty text gives the defaults, of a repeated
// option the last counts. Options of the pinned host memory and of locking are checked and have no effect on
// device memory; neither has graph_capture_record_stream_reuse, whose reuse depends on the captured graph: a
// block that other streams used during a capture waits for the capture's end, as without the option. Throws
// Error for an unknown option, a bad value, and for backend:cudaMallocAsync, which is not modelled.
AllocConf parse_alloc_conf(std::string_view text);

}  // namespace metaprof
