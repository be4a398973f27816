#pragma once

namespace metaprof {

/// Makes the process's heap fit for traces: large, and soon gone. To be called once, first of all in `main`. Without
/// effect where the C library is not glibc.
void prepare_heap();

}  // namespace metaprof
