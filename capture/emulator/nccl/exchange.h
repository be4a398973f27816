#pragma once
// How the ranks of a communicator tell each other the small values that the host wrote: each has a file in the log's folder
// to which it appends what it sends, and reads those of the others. Without such a folder nobody tells anything.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/emulator/machine/own_file.h"

namespace metaprof::emulator::nccl {

/// What a rank sent: its bytes, or nothing if the host did not write them.
using Sent = std::optional<std::string>;

class Exchange {
 public:
  /// `name` is that of the communicator, the same for all of its ranks; empty: nothing is exchanged.
  Exchange(std::string name, int ranks, int rank);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool possible() const { return possible_; }
  static constexpr int kAll = -1;  ///< sent to all ranks: a collective

  /// Sends: the next collective of this communicator, or the next message to a rank. Gives its number.
  int64_t send(int to, const Sent& value);
  /// The number of the next message from a rank.
  int64_t next_from(int rank) {
    const std::lock_guard lock(mutex_);
    return received_[rank]++;
  }
  /// What `from` sent to `to` (this rank, or kAll) under a number. Waits; a rank that says nothing for so long that it cannot be
  /// there sent nothing that is known.
  Sent receive(int from, int to, int64_t number);

 private:
  struct Reader;

  std::string path(int rank) const;
  int own_file();
  bool read_more(int from);

  std::string name_;
  int rank_ = 0;
  bool possible_ = false;
  OwnFile file_;
  std::mutex mutex_;
  std::map<int, int64_t> sent_, received_;  // messages so far, by the other rank or kAll
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace metaprof::emulator::nccl
