#include "meta/platform/gradient_streams.h"

namespace metaprof {

bool first_gradient_decides_stream(const Framework& framework) {
  return framework.version >= FrameworkVersion{.major = 2, .minor = 8, .patch = 0};
}

}  // namespace metaprof
