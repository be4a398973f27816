#pragma once
// How long a piece of work takes the described device: the one place that the clock's `expected` asks. Seconds.

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

/// What a piece of work does, as far as the stand-in that was called knows.
struct Cost {
  double moved = 0;       ///< bytes of device memory that it reads and writes
  double over_link = 0;   ///< bytes between the host and the device
  double flops = 0;       ///< 2 per multiply-add
  int element_bytes = 4;  ///< of what it multiplies: 4 is f32, 2 is f16 and bf16
};

/// What a kernel of so many threads is taken to move: nobody tells the device what a kernel does.
METAPROF_EXPORT Cost cost_of_threads(double threads);

METAPROF_EXPORT double seconds_of(const Cost& cost);

/// What the host takes, with what PyTorch does for it, to give a device one piece of work, to record an event, to let a stream
/// wait for one, and to ask whether something is complete. Beside an H200: 7 to 12 microseconds for `x.add_(1)`, 5 for
/// `event.record()`, 7 for `wait_stream` with its event, 0.3 for a query (tests/measured/h200/driver_times.json).
constexpr double kHostSecondsToSubmit = 10e-6, kHostSecondsToRecord = 5e-6, kHostSecondsToWait = 2e-6,
                 kHostSecondsToAsk = 1e-6;

/// What the host takes to get memory of the device, and to give it back; the same for pinned memory of its own, which is
/// locked page by page. As beside an H200.
METAPROF_EXPORT double seconds_to_take(bool pinned, double bytes);
METAPROF_EXPORT double seconds_to_give_back(bool pinned, double bytes);

}  // namespace metaprof::emulator
