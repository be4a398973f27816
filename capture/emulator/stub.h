#pragma once
// Functions of the interface that nothing here defines: a generated file names them, one a line. They are weak, so
// that a function written by hand takes the place of its stub.

#include "capture/emulator/machine/missing.h"
#include "capture/emulator/machine/streams/work.h"

/// Fails, after saying its name.
#define REFUSES(name)                                                   \
  extern "C" __attribute__((weak, visibility("default"))) long name() { \
    metaprof_emulator_missing(METAPROF_SONAME, #name);                  \
    return METAPROF_NOT_SUPPORTED;                                      \
  }
/// Does nothing but report success.
#define SUCCEEDS(name) \
  extern "C" __attribute__((weak, visibility("default"))) long name() { return 0; }
/// Reports success, and gives the stream of its first argument, a handle, a piece of work (docs/explanation/emulator.md).
#define WORKS(name)                                                                        \
  extern "C" __attribute__((weak, visibility("default"))) long name(void* const* handle) { \
    return metaprof_emulator_work(*handle) == 0 ? 0 : METAPROF_EXECUTION_FAILED;           \
  }
