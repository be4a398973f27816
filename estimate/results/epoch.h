#pragma once
// What a whole epoch costs, in which each batch is as long as its longest sample. docs/how_to/lengths.md explains it to users.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/units.h"
#include "meta/trace/trace.h"

namespace metaprof {

/// The samples of one call of the model, and the tokens to which each is padded.
struct BatchShape {
  int64_t samples = 0, tokens = 0;

  int64_t padded() const { return samples * tokens; }
  friend bool operator==(const BatchShape&, const BatchShape&) = default;
  friend bool operator<(const BatchShape& one, const BatchShape& other) {
    return std::pair(one.samples, one.tokens) < std::pair(other.samples, other.tokens);
  }
};

/// Where memory ran out.
struct EpochEnd {
  int64_t step = 0;  ///< from 0
  BatchShape batch;
  Phase phase = Phase::forward;
  Bytes requested = {}, allocated = {}, reserved = {};  ///< `allocated`, `reserved`: when it asked
};

/// A figure of each step, over the steps.
struct OverSteps {
  Bytes largest, mean, percentile_99;
  int64_t step = 0;  ///< the first with the largest
};

/// The steps of an epoch, one after the other, on one allocator.
struct EpochRun {
  int64_t steps = 0;              ///< that were done
  OverSteps allocated, reserved;  ///< peaks within each step
  std::optional<EpochEnd> ended;  ///< nothing: memory did not run out
};

/// The same samples, otherwise.
struct EpochChange {
  std::string change;  ///< as one types it: "--bucket 100"
  int64_t steps = 0;
  double padding = 0;  ///< share of the tokens that are padding
  EpochRun run = {};   ///< on the device; where memory runs out, as if it did not
  bool fits = false;
};

struct EpochReport {
  int64_t samples = 0, batches = 0, steps = 0;
  int64_t shapes = 0;     ///< different batches
  int64_t left_over = 0;  ///< batches at the end that make no whole step (--accumulate)
  bool knows_samples =
      true;  ///< false: batches were given as they are, and how much of them is padding is not known
  double padding = 0;                          ///< share of the tokens that are padding
  BatchShape largest = {};                     ///< the batch with the most tokens, padding among them
  Bytes largest_alone = {};                    ///< what a step of it reserves at most, with nothing before it
  EpochRun run = {};                           ///< on the device
  std::optional<EpochRun> without_limit = {};  ///< where memory runs out: as if it did not
  std::vector<EpochChange> changes = {};       ///< what else one may try; empty: was not asked for

  /// What would be reserved at most without a limit.
  Bytes needed() const { return (without_limit ? *without_limit : run).reserved.largest; }
  Bytes needed_allocated() const { return (without_limit ? *without_limit : run).allocated.largest; }
};

}  // namespace metaprof
