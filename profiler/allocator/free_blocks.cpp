#include "profiler/allocator/free_blocks.h"

#include <algorithm>

namespace metaprof {

namespace {

constexpr std::size_t kLongestRun = 64;

bool below(const FreeBlocks::Entry& entry, StreamId stream, std::uint64_t size, std::uint64_t address) {
  if (entry.stream != stream) return entry.stream < stream;
  if (entry.size != size) return entry.size < size;
  return entry.address < address;
}

}  // namespace

FreeBlocks::Position FreeBlocks::lower_bound(StreamId stream, std::uint64_t size, std::uint64_t address) const {
  const auto is_below = [&](const Entry& entry, const Entry&) { return below(entry, stream, size, address); };
  const auto run = std::partition_point(runs_.begin(), runs_.end(), [&](const std::vector<Entry>& r) {
    return below(r.back(), stream, size, address);
  });
  if (run == runs_.end()) return end();
  const auto entry = std::lower_bound(run->begin(), run->end(), Entry{}, is_below);
  return {static_cast<std::size_t>(run - runs_.begin()), static_cast<std::size_t>(entry - run->begin())};
}

void FreeBlocks::insert(const Entry& entry) {
  ++size_;
  Position at = lower_bound(entry.stream, entry.size, entry.address);
  if (at == end()) {
    if (runs_.empty()) runs_.emplace_back().reserve(kLongestRun);
    at = {runs_.size() - 1, runs_.back().size()};
  }
  std::vector<Entry>& run = runs_[at.run];
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(at.index), entry);
  if (run.size() < kLongestRun) return;
  const auto middle = run.begin() + kLongestRun / 2;
  std::vector<Entry> second;
  second.reserve(kLongestRun);
  second.assign(middle, run.end());
  run.erase(middle, run.end());
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(at.run) + 1, std::move(second));
}

void FreeBlocks::erase(Position at) {
  --size_;
  std::vector<Entry>& run = runs_[at.run];
  run.erase(run.begin() + static_cast<std::ptrdiff_t>(at.index));
  if (run.empty()) runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at.run));
}

std::vector<BlockId> FreeBlocks::blocks() const {
  std::vector<BlockId> all;
  all.reserve(size_);
  for (const auto& run : runs_) {
    for (const Entry& entry : run) all.push_back(entry.block);
  }
  return all;
}

}  // namespace metaprof
