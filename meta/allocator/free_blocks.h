#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meta/allocator/block.h"

namespace metaprof {

// The free blocks of a pool in the order stream, size, place (Block::place), so that the best fit is the first one not
// below (stream, size). A sorted sequence in short runs: an insertion moves at most one run and the ends of
// the runs, a search looks at the ends and then within one run. Blocks are smaller than 2^48 bytes
// (DeviceMemory::kMostMemory).
class FreeBlocks {
 public:
  struct Position {
    std::size_t run;
    std::size_t index;

    bool operator==(const Position&) const = default;
  };

  void insert(StreamId stream, std::uint64_t size, std::uint64_t place, BlockNumber block);
  // A block of that stream, size and place must be there.
  void erase(StreamId stream, std::uint64_t size, std::uint64_t place);
  void erase(Position at);
  // What is at `at` becomes this block of the same stream, in the place where it then belongs.
  void replace(Position at, std::uint64_t size, std::uint64_t place, BlockNumber block);

  // Where the block of that stream, size and place is; it must be there.
  Position at(StreamId stream, std::uint64_t size, std::uint64_t place) const;
  // First block that is not below; end() if there is none. Positions are valid until the next change.
  Position lower_bound(StreamId stream, std::uint64_t size, std::uint64_t place = 0) const;
  Position begin() const { return {0, 0}; }
  Position end() const { return {runs_.size(), 0}; }
  Position next(Position at) const {
    return ++at.index < runs_[at.run].size() ? at : Position{at.run + 1, 0};
  }
  // `at` must not be begin().
  Position previous(Position at) const {
    return at.index > 0 ? Position{at.run, at.index - 1} : Position{at.run - 1, runs_[at.run - 1].size() - 1};
  }

  BlockNumber block(Position at) const { return runs_[at.run][at.index].block; }
  StreamId stream(Position at) const {
    return static_cast<StreamId>(runs_[at.run][at.index].key.major >> 48);
  }
  std::uint64_t size(Position at) const { return runs_[at.run][at.index].key.major << 16 >> 16; }

  std::size_t count() const { return count_; }
  // All blocks in order: for changes while going through them.
  std::vector<BlockNumber> blocks() const;

 private:
  struct Key {
    std::uint64_t major;  // stream and size
    std::uint64_t place;

    bool operator==(const Key&) const = default;
    // As one number of 128 bits: a branch would be guessed wrong half of the time.
    bool operator<(const Key& other) const {
      using Whole = unsigned __int128;
      return (Whole{major} << 64 | place) < (Whole{other.major} << 64 | other.place);
    }
  };
  struct Entry {
    Key key;
    BlockNumber block;
  };
  using Run = std::vector<Entry>;

  static Key key_of(StreamId stream, std::uint64_t size, std::uint64_t place) {
    constexpr std::uint64_t largest = (std::uint64_t{1} << 48) - 1;
    return {std::uint64_t{stream} << 48 | (size < largest ? size : largest), place};
  }
  Position find(const Key& key) const;
  void split(std::size_t run);

  std::vector<Run> runs_;  // none is empty
  std::vector<Key> ends_;  // the last key of each run
  Run spare_;              // storage of a run that became empty
  std::size_t count_ = 0;
};

}  // namespace metaprof
