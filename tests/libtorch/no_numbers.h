#pragma once

#include "core/error.h"

namespace metaprof {

/// libtorch cannot compute this call: it is older than the operator, or its kernel lacks a type.
class NoNumbers : public Error {
 public:
  using Error::Error;
};

}  // namespace metaprof
