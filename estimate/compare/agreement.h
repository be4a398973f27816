#pragma once
// Whether a measurement is of what is estimated. Figures of another card, batch or version would be compared in silence.

#include <span>

#include "estimate/prepare/prepare.h"
#include "step/options.h"
#include "validation/steps/measurement.h"

namespace metaprof {

/// Options of a report of a run, which says on what it ran but not how its steps were made: device, memory, version,
/// allocator's settings and number of steps where nothing is asked for. Errors: its device is not known here.
RunOptions with_facts_of_run(RunOptions asked, const Measurement& run);

/// Errors, with the file, what it says, and who says otherwise: another device, memory, version of PyTorch, CUDA or
/// cuDNN, allocator's settings, number of steps, batch or model. `asked`: what the user gave.
void expect_agreement(const Measurement& measurement, const RunOptions& asked, const PreparedRun& prepared);

/// The same of what a recording says of itself in two places. `platform`: the device that it names.
void expect_agreement(const Measurement& recording, const RunOptions& asked, const Platform& platform);

/// Errors: two of the measurements that stand in one table are not of the same device and versions.
void expect_agreement(std::span<const Measurement> runs);

}  // namespace metaprof
