#pragma once
// What a run measured of itself, as the program has it that was captured from it.

#include <optional>

#include "meta/trace/trace.h"
#include "program/program.h"
#include "validation/results/check_result.h"
#include "validation/steps/measurement.h"

namespace metaprof {

/// Errors: the program was not captured from a run, or the run was not measured; a statistic is negative.
Measurement measurement_of(const Program& program);

/// The first request or return in which the run and the trace differ; its line is that of the run's requests and
/// returns, counted from 1.
std::optional<EventMismatch> first_difference(const Capture& capture, const Trace& trace, Device device);

}  // namespace metaprof
