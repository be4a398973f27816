#include "meta/allocator/free_blocks.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace metaprof {

namespace {

constexpr std::size_t kLongestRun = 64;

// Index of the first element for which `below` is false. Without branches that depend on the data: in a
// search they would be guessed wrong half of the time.
template <class Below>
std::size_t count_below(std::size_t count, Below below) {
  std::size_t first = 0;
  while (count > 1) {
    const std::size_t half = count / 2;
    first += below(first + half - 1) ? half : 0;
    count -= half;
  }
  return first + (count == 1 && below(first) ? 1 : 0);
}

}  // namespace

FreeBlocks::Position FreeBlocks::find(const Key& key) const {
  const std::size_t run = count_below(ends_.size(), [&](std::size_t i) { return ends_[i] < key; });
  if (run == runs_.size()) return end();
  const Run& entries = runs_[run];
  return {run, count_below(entries.size(), [&](std::size_t i) { return entries[i].key < key; })};
}

FreeBlocks::Position FreeBlocks::lower_bound(StreamId stream, std::uint64_t size, std::uint64_t place) const {
  return find(key_of(stream, size, place));
}

void FreeBlocks::insert(StreamId stream, std::uint64_t size, std::uint64_t place, BlockNumber block) {
  ++count_;
  const Key key = key_of(stream, size, place);
  Position at = find(key);
  if (at == end()) {
    if (runs_.empty()) {
      runs_.push_back(std::exchange(spare_, {}));
      runs_.back().reserve(kLongestRun);
      ends_.push_back(key);
    }
    at = {runs_.size() - 1, runs_.back().size()};
    ends_.back() = key;
  }
  Run& run = runs_[at.run];
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(at.index), {key, block});
  if (run.size() == kLongestRun) split(at.run);
}

void FreeBlocks::split(std::size_t index) {
  const auto middle = runs_[index].begin() + kLongestRun / 2;
  Run second;
  second.reserve(kLongestRun);
  second.assign(middle, runs_[index].end());
  runs_[index].erase(middle, runs_[index].end());
  const auto after = static_cast<std::ptrdiff_t>(index) + 1;
  ends_.insert(ends_.begin() + after, second.back().key);
  ends_[index] = runs_[index].back().key;
  runs_.insert(runs_.begin() + after, std::move(second));
}

FreeBlocks::Position FreeBlocks::at(StreamId stream, std::uint64_t size, std::uint64_t place) const {
  const Key key = key_of(stream, size, place);
  const Position at = find(key);
  assert(at != end() && runs_[at.run][at.index].key == key);
  return at;
}

void FreeBlocks::erase(StreamId stream, std::uint64_t size, std::uint64_t place) {
  erase(at(stream, size, place));
}

// Blocks that are split or merged mostly stay in their run: then only what lies between is moved.
void FreeBlocks::replace(Position at, std::uint64_t size, std::uint64_t place, BlockNumber block) {
  const Key key = key_of(stream(at), size, place);
  const bool below_run = at.run > 0 && !(ends_[at.run - 1] < key);
  const bool above_run = at.run + 1 < runs_.size() && ends_[at.run] < key;
  if (below_run || above_run) {
    const StreamId same = stream(at);
    erase(at);
    return insert(same, size, place, block);
  }
  Run& run = runs_[at.run];
  const auto old = run.begin() + static_cast<std::ptrdiff_t>(at.index);
  if (key < old->key) {
    const std::size_t index = count_below(at.index, [&](std::size_t i) { return run[i].key < key; });
    const auto place_now = run.begin() + static_cast<std::ptrdiff_t>(index);
    std::move_backward(place_now, old, old + 1);
    *place_now = {key, block};
  } else {
    const std::size_t behind = count_below(run.size() - at.index - 1,
                                           [&](std::size_t i) { return run[at.index + 1 + i].key < key; });
    const auto place_now = old + static_cast<std::ptrdiff_t>(behind);
    std::move(old + 1, place_now + 1, old);
    *place_now = {key, block};
  }
  ends_[at.run] = run.back().key;
}

void FreeBlocks::erase(Position at) {
  --count_;
  Run& run = runs_[at.run];
  run.erase(run.begin() + static_cast<std::ptrdiff_t>(at.index));
  if (!run.empty()) {
    if (at.index == run.size()) ends_[at.run] = run.back().key;
    return;
  }
  spare_ = std::move(run);
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at.run));
  ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(at.run));
}

std::vector<BlockNumber> FreeBlocks::blocks() const {
  std::vector<BlockNumber> all;
  all.reserve(count_);
  for (const Run& run : runs_) {
    for (const Entry& entry : run) all.push_back(entry.block);
  }
  return all;
}

}  // namespace metaprof
