#include "capture/emulator/machine/streams/clock.h"

#include <algorithm>
#include <unordered_map>

#include "capture/emulator/machine/environment.h"

namespace metaprof::emulator {
namespace {

struct Progress {
  uint64_t given = 0, done = 0;  ///< pieces of work
};

// By the stream's number. A stream that is destroyed goes on with its work, as on a device.
Progress& progress(uint64_t stream) {
  static auto* const kAll = new std::unordered_map<uint64_t, Progress>;
  return (*kAll)[stream];
}

// How long the process has been at work, by its own account: the time of its calls, and of what it waited for.
double host_seconds = 0;

bool is_late() { return environment().clock == Clock::late; }
bool is_expected() { return environment().clock == Clock::expected; }

void require(Moment& moment, uint64_t stream, uint64_t works) {
  for (auto& [number, count] : moment.works)
    if (number == stream) return void(count = std::max(count, works));
  moment.works.emplace_back(stream, works);
}

}  // namespace

void add_work(Moment& ready, uint64_t stream, double seconds) {
  if (is_late()) require(ready, stream, ++progress(stream).given);
  if (is_expected()) ready.seconds = std::max(ready.seconds, host_seconds) + seconds;
}

void join(Moment& ready, const Moment& other) {
  for (const auto& [stream, works] : other.works)
    if (progress(stream).done < works) require(ready, stream, works);
  ready.seconds = std::max(ready.seconds, other.seconds);
}

bool has_come(const Moment& moment) {
  return moment.seconds <= host_seconds &&
         std::all_of(moment.works.begin(), moment.works.end(),
                     [](const auto& work) { return progress(work.first).done >= work.second; });
}

void wait_until(const Moment& moment) {
  for (const auto& [stream, works] : moment.works)
    progress(stream).done = std::max(progress(stream).done, works);
  host_seconds = std::max(host_seconds, moment.seconds);
}

void spend(double seconds) {
  if (is_expected()) host_seconds += seconds;
}

Moment next_of(const Moment& ready) {
  Moment next = ready;
  if (is_expected()) next.seconds = std::max(next.seconds, host_seconds);
  return next;
}

}  // namespace metaprof::emulator
