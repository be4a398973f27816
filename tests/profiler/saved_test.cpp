// What is kept for a backward, of recordings.
#include <gtest/gtest.h>

#include "meta/allocator/exact_allocator.h"
#include "meta/trace/text.h"
#include "profiler/profile.h"

namespace metaprof {
namespace {

// As a recording has it: what backward frees is written where it begins.
TEST(Saved, WhatIsKeptForABackwardAfterZeroGrad) {
  const Trace trace = parse_trace(
      "# phase forward step 0\n> aten::mul\n+ 1 1024 activation\n< f32[256]@1\n"
      "# phase zero_grad step 0\nnode #1 MulBackward0 module=\"fc\"\nsave 1 MulBackward0#1\nloss "
      "MulBackward0#1\n"
      "# phase backward step 0\n> evaluate MulBackward0#1\n- 1\n<\n",
      "a recording");
  ExactAllocator allocator;
  EXPECT_EQ(profile_memory(trace, kFirstGpu, allocator).saved.bytes, Bytes{1024});
}

}  // namespace
}  // namespace metaprof
