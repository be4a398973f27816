#pragma once
// The clock of the devices: when work that streams were given is complete (METAPROF_EMULATOR_CLOCK). Whoever calls these
// functions holds machine_mutex().

#include <cstdint>
#include <utility>
#include <vector>

namespace metaprof::emulator {

/// When something is complete: when these streams have done so many pieces of work, and so much time is over. Nothing: it is.
struct Moment {
  std::vector<std::pair<uint64_t, uint64_t>> works =
      {};              ///< a stream's number, pieces of work: with Clock::late
  double seconds = 0;  ///< of the process, from its beginning: with Clock::expected
};

/// A stream is given a piece of work of `seconds`; it is complete with all that the stream was given before.
void add_work(Moment& ready, uint64_t stream, double seconds);
/// What the stream is given from now on comes after `other`, too.
void join(Moment& ready, const Moment& other);
bool has_come(const Moment& moment);
void wait_until(const Moment& moment);
/// The host does something else for so long.
void spend(double seconds);
/// When a stream comes to what it is given now.
Moment next_of(const Moment& ready);

}  // namespace metaprof::emulator
