#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "profiler/allocator/allocator.h"

namespace metaprof {

// The free blocks of a pool in the order stream, size, address, so that the best fit is the first one not below
// (stream, size). A sorted sequence in short runs: an insertion moves at most one run, and a run is
// searched within a few cache lines.
class FreeBlocks {
 public:
  struct Entry {
    std::uint64_t size;
    std::uint64_t address;
    StreamId stream;
    BlockId block;
  };
  struct Position {
    std::size_t run;
    std::size_t index;

    bool operator==(const Position&) const = default;
  };

  void insert(const Entry& entry);
  // The entry of that stream, size and address must be there.
  void erase(const Entry& entry) { erase(lower_bound(entry.stream, entry.size, entry.address)); }
  void erase(Position at);

  // First entry that is not below; end() if there is none. Positions are valid until the next change.
  Position lower_bound(StreamId stream, std::uint64_t size, std::uint64_t address = 0) const;
  Position begin() const { return {0, 0}; }
  Position end() const { return {runs_.size(), 0}; }
  Position next(Position at) const {
    return ++at.index < runs_[at.run].size() ? at : Position{at.run + 1, 0};
  }
  // `at` must not be begin().
  Position previous(Position at) const {
    return at.index > 0 ? Position{at.run, at.index - 1} : Position{at.run - 1, runs_[at.run - 1].size() - 1};
  }
  const Entry& operator[](Position at) const { return runs_[at.run][at.index]; }

  std::size_t size() const { return size_; }
  // All blocks in order: for changes while going through them.
  std::vector<BlockId> blocks() const;

 private:
  std::vector<std::vector<Entry>> runs_;  // none is empty
  std::size_t size_ = 0;
};

}  // namespace metaprof
