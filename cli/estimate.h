#pragma once
// What the commands that run steps share: a program on a device, with options, to what it costs.

#include <memory>
#include <string>

#include "allocator/device_allocator.h"
#include "cli/profile_options.h"
#include "meta/platform/profile.h"
#include "meta/program/program.h"
#include "meta/trace/trace.h"
#include "profiler/phases.h"
#include "reports/profile_report.h"

namespace metaprof {

/// Errors that show before a model is read: `--env` is malformed, the table of `--workspaces` cannot be read.
void check_options(const ProfileOptions& options);

/// The device that `--device` and `--memory` describe.
DeviceProfile device_of(const ProfileOptions& options);

/// What the device can do at best.
Rates rates_of(const DeviceProfile& profile);

/// The model with the inputs that `--batch`, `--sequence` and `--set` ask for. Errors: as load_program and
/// set_inputs.
Program program_of(const ProfileOptions& options);

/// Runs the steps that `options.step` asks for, with the workspaces that `options.workspaces` names; says on
/// stderr how many calls a table of workspaces does not know. `report` gets the model and the options.
Trace run_program(const Program& program, const ProfileOptions& options, const DeviceProfile& device,
                  ProfileReport& report);

/// The model's run; or the trace, if MODEL is one. Errors: options of the step were given with a trace.
Trace trace_of(const CLI::App& command, const ProfileOptions& options, const DeviceProfile& device,
               ProfileReport& report);

/// Everything that a report says of a run. Errors: `options.alloc_conf` is malformed, or there is no cache to
/// configure.
void profile_trace(const Trace& trace, const ProfileOptions& options, const DeviceProfile& device,
                   ProfileReport& report);

/// The allocator's statistics alone: what `fit` and `sweep` ask a thousand times. `memory`: the device's, or
/// another limit.
Phases replay_trace(const Trace& trace, const ProfileOptions& options, const DeviceProfile& device,
                    Bytes memory);

/// No device has more memory than this.
Bytes unlimited_memory();

}  // namespace metaprof
