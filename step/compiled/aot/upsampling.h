#pragma once
// Images made larger, as the framework's compiler writes them: indices that are computed, and what they pick,
// weighted (torch/_decomp/decompositions.py: _upsample_nearest, _upsample_linear, which are registered for Autograd).

#include "meta/session/session.h"

namespace metaprof {

/// While it lives, calls that make images larger are taken apart, above autograd.
class UpsamplingByIndices {
 public:
  explicit UpsamplingByIndices(Session& session);
  ~UpsamplingByIndices();
  UpsamplingByIndices(const UpsamplingByIndices&) = delete;

 private:
  Session& session_;
};

}  // namespace metaprof
