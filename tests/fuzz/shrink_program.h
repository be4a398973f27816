#pragma once

#include "tests/fuzz/findings.h"

namespace metaprof {

/// Leaves out calls behind the one that matters, those that it does not need, and makes inputs of results of those before
/// it, as long as the case still fails. An export becomes the text of a program if that fails as well.
HostileCase shrink_program(HostileCase hostile, const Findings::Fails& fails);

}  // namespace metaprof
