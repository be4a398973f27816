#pragma once

namespace metaprof::emulator::cudnn {

/// What a cudnnDropoutDescriptor_t points to.
struct Dropout {
  float rate = 0;
};

}  // namespace metaprof::emulator::cudnn
