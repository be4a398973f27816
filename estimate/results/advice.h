#pragma once
// What helps a step to fit.

#include <string>
#include <utility>
#include <vector>

#include "core/units.h"

namespace metaprof {

/// A run with some options changed.
struct AdviceRow {
  std::vector<std::pair<std::string, std::string>>
      changes;                ///< ("checkpoint", "model.layers.*"); empty: as it is
  Bytes allocated, reserved;  ///< peaks; where it does not fit, without a limit
  Flops flops;                ///< of a step, as the framework counts
  bool fits = false;
};

struct AdviceReport {
  std::string model, device;
  std::string inputs = {};      ///< that it is run on: "input_ids i64[4,512]"
  Bytes available;              ///< for the allocator
  Bytes outside = {};           ///< beside the allocator
  double margin = 0;            ///< share of the memory that is to stay free
  Bytes memory = {};            ///< the device's
  AdviceRow base;               ///< as it is
  std::vector<AdviceRow> rows;  ///< one change each, the least memory first
  AdviceRow best;               ///< changes that fit together; the least memory found, where none fit
};

}  // namespace metaprof
