#pragma once
// A device as cuDNN wants it described when none is there.

#include <string>

#include "meta/platform/platform.h"

namespace metaprof {

/// JSON. The compute capability decides nearly everything; on 9.0 the clocks decide some sizes. Facts that are
/// not said are those of the built-in device of the nearest compute capability.
std::string cudnn_description(const Platform& platform);

}  // namespace metaprof
