#pragma once
// An estimate against a measurement: number by number, and event by event.

#include <filesystem>
#include <optional>

#include "meta/trace/trace.h"
#include "profiler/allocator/phases.h"
#include "program/program.h"
#include "validation/results/check_result.h"
#include "validation/steps/measurement.h"

namespace metaprof {

/// Errors: the measurement is of another model or batch (another number of parameters, other inputs).
void expect_same_model(const Measurement& measurement, const Program& program);

CheckResult compare(const Measurement& measurement, const Phases& phases);

/// Errors: as read_recording.
std::optional<EventMismatch> first_difference(const std::filesystem::path& log, const Trace& trace,
                                              Device device);

/// The same of two logs; `estimated` of the result is what the other has.
std::optional<EventMismatch> first_difference(const std::filesystem::path& log,
                                              const std::filesystem::path& other);

}  // namespace metaprof
