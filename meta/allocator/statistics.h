#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

// One number that the allocator keeps, as torch.cuda.memory_stats() reports it.
struct Statistic {
  std::uint64_t current = 0;
  std::uint64_t peak = 0;       // maximum of current since the last reset_peak
  std::uint64_t allocated = 0;  // sum of all increases
  std::uint64_t freed = 0;      // sum of all decreases

  void increase(std::uint64_t amount) {
    current += amount;
    if (current > peak) peak = current;
    allocated += amount;
  }
  void decrease(std::uint64_t amount) {
    current -= amount;
    freed += amount;
  }
  void reset_peak() { peak = current; }
  bool operator==(const Statistic&) const = default;
};

// The same number over all blocks and over those of the small (requests up to 1 MiB) and the large pools.
// Private pools count in all three.
struct PooledStatistic {
  Statistic all;
  Statistic small_pool;
  Statistic large_pool;

  Statistic& of(bool small) { return small ? small_pool : large_pool; }
  void increase(bool small, std::uint64_t amount) {
    all.increase(amount);
    of(small).increase(amount);
  }
  void decrease(bool small, std::uint64_t amount) {
    all.decrease(amount);
    of(small).decrease(amount);
  }
  void reset_peak() {
    all.reset_peak();
    small_pool.reset_peak();
    large_pool.reset_peak();
  }
  bool operator==(const PooledStatistic&) const = default;
};

// What torch.cuda.memory_stats() of PyTorch 2.11 reports. Counts are numbers of blocks or segments.
struct Statistics {
  PooledStatistic allocation;       // blocks held by the program
  PooledStatistic segment;          // pieces of device memory; expandable segments do not count
  PooledStatistic active;           // blocks held by the program or waiting for another stream
  PooledStatistic inactive_split;   // free parts of segments that are partly used
  PooledStatistic allocated_bytes;  // whole blocks, so rounding and left-overs count
  PooledStatistic reserved_bytes;   // segments, and mapped pages of expandable segments
  PooledStatistic active_bytes;
  PooledStatistic inactive_split_bytes;
  PooledStatistic requested_bytes;  // what was asked for, of the active blocks
  Statistic oversize_allocations;   // blocks of max_split_size or more
  Statistic oversize_segments;
  std::uint64_t num_alloc_retries = 0;  // requests to the device repeated after releasing all cached blocks
  std::uint64_t num_ooms = 0;
  std::uint64_t num_sync_all_streams = 0;
  std::uint64_t num_device_alloc = 0;  // requests to the device that were granted, mappings included
  std::uint64_t num_device_free = 0;
  std::uint64_t max_split_size = 0;

  // Every peak becomes the current value (torch.cuda.reset_peak_memory_stats).
  void reset_peak();

  // Sums and counters start again from 0 (torch.cuda.reset_accumulated_memory_stats).
  void reset_accumulated();

  bool operator==(const Statistics&) const = default;
};

// One number of a Statistics, e.g. "allocated_bytes.all.peak" or "num_ooms" as torch.cuda.memory_stats()
// names it.
class StatisticField {
 public:
  const std::string& name() const { return name_; }
  std::uint64_t of(const Statistics& statistics) const {
    if (counter_ != nullptr) return statistics.*counter_;
    if (pooled_ != nullptr) return statistics.*pooled_.*pool_.*value_;
    return statistics.*unpooled_.*value_;
  }

  // All of them, in the order in which Statistics has them.
  static const std::vector<StatisticField>& all();
  // Null if there is none of that name.
  static const StatisticField* find(std::string_view name);

 private:
  static std::vector<StatisticField> make_all();

  std::string name_;
  PooledStatistic Statistics::*pooled_ = nullptr;
  Statistic PooledStatistic::*pool_ = nullptr;
  Statistic Statistics::*unpooled_ = nullptr;
  std::uint64_t Statistic::*value_ = nullptr;
  std::uint64_t Statistics::*counter_ = nullptr;
};

}  // namespace metaprof
