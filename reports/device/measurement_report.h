#pragma once
// What was measured on a real device.

#include <string>

#include "estimate/results/device/measurement.h"

namespace metaprof {

/// `width`: as in TextTable::text.
std::string measurement_text(const DeviceMeasurement& measurement, size_t width = 0);
/// A file for --device (docs/reference/devices.md): what the device is, with all samples under "measured".
std::string device_file(const DeviceMeasurement& measurement);

}  // namespace metaprof
