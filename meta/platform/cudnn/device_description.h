#pragma once
// A device as cuDNN wants it described when none is there.

#include <string>

#include "meta/platform/profile.h"

namespace metaprof {

/// JSON. The compute capability decides nearly everything; on 9.0 the clocks decide some sizes. Facts that a
/// profile does not have are those of the built-in device of the same compute capability.
std::string cudnn_description(const DeviceProfile& device);

}  // namespace metaprof
