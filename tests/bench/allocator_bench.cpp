// How fast the caching allocator answers: items per second are requests and frees together.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/exact_allocator.h"

namespace metaprof {
namespace {

// Sizes as a training step has them: many small ones, activations of a few MiB, some large.
std::vector<int64_t> typical_sizes(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<int64_t> sizes(count);
  for (int64_t& size : sizes) {
    const int shift = std::uniform_int_distribution<int>(9, 26)(random);
    size = std::uniform_int_distribution<int64_t>(int64_t{1} << (shift - 1), int64_t{1} << shift)(random);
  }
  return sizes;
}

// One block at a time, the same size: always the same free block.
void allocate_and_free_one(benchmark::State& state) {
  CachingAllocator allocator;
  for (auto _ : state) {
    const auto block = allocator.allocate(4096, 0);
    allocator.free(*block);
  }
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(allocate_and_free_one);

// A forward and backward pass: blocks are taken one after the other and returned in the opposite order.
template <class Allocator>
void step(benchmark::State& state) {
  const std::vector<int64_t> sizes = typical_sizes(static_cast<std::size_t>(state.range(0)));
  std::vector<BlockNumber> blocks(sizes.size());
  Allocator allocator;
  for (auto _ : state) {
    for (std::size_t i = 0; i < sizes.size(); ++i) blocks[i] = *allocator.allocate(sizes[i], 0);
    for (std::size_t i = sizes.size(); i-- > 0;) allocator.free(blocks[i]);
  }
  state.SetItemsProcessed(2 * state.iterations() * state.range(0));
}
BENCHMARK(step<CachingAllocator>)->Arg(1000)->Arg(100'000);
BENCHMARK(step<ExactAllocator>)->Arg(1000);

// Blocks of all sizes live for random times: the most fragmented state.
void random_lifetimes(benchmark::State& state, const char* conf) {
  const auto live = static_cast<std::size_t>(state.range(0));
  const std::vector<int64_t> sizes = typical_sizes(1 << 16);
  CachingAllocator allocator({.conf = parse_alloc_conf(conf), .device = {.capacity = kUnlimited / 4}});
  std::vector<BlockNumber> blocks(live);
  for (std::size_t i = 0; i < live; ++i) blocks[i] = *allocator.allocate(sizes[i % sizes.size()], 0);
  std::mt19937 random(2);
  std::size_t next = 0;
  for (auto _ : state) {
    BlockNumber& block = blocks[random() % live];
    allocator.free(block);
    block = *allocator.allocate(sizes[next++ % sizes.size()], 0);
  }
  state.SetItemsProcessed(2 * state.iterations());
  state.counters["free blocks"] = static_cast<double>(allocator.statistics().inactive_split.all.current);
}
BENCHMARK_CAPTURE(random_lifetimes, ordinary, "")->Arg(1000)->Arg(10'000)->Arg(100'000);
BENCHMARK_CAPTURE(random_lifetimes, expandable, "expandable_segments:True")->Arg(1000)->Arg(10'000);

}  // namespace
}  // namespace metaprof
