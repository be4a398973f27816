#pragma once
// Functions that say how many bytes of workspace a call needs: none, because nothing is computed. What decides their
// place in the table is only where the answer goes: after `BEFORE` arguments that fit in a machine word.

#include <cstddef>
#include <type_traits>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"

#define METAPROF_WORDS_3 long, long, long
#define METAPROF_WORDS_4 METAPROF_WORDS_3, long
#define METAPROF_WORDS_5 METAPROF_WORDS_4, long
#define METAPROF_WORDS_6 METAPROF_WORDS_5, long
#define METAPROF_WORDS_7 METAPROF_WORDS_6, long
#define METAPROF_WORDS_8 METAPROF_WORDS_7, long
#define METAPROF_WORDS_9 METAPROF_WORDS_8, long
#define METAPROF_WORDS_10 METAPROF_WORDS_9, long
#define METAPROF_WORDS_11 METAPROF_WORDS_10, long
#define METAPROF_WORDS_12 METAPROF_WORDS_11, long
#define METAPROF_WORDS_13 METAPROF_WORDS_12, long
#define METAPROF_WORDS_14 METAPROF_WORDS_13, long
#define METAPROF_WORDS_15 METAPROF_WORDS_14, long
#define METAPROF_WORDS_16 METAPROF_WORDS_15, long
#define METAPROF_WORDS_17 METAPROF_WORDS_16, long
#define METAPROF_WORDS_19 METAPROF_WORDS_17, long, long

/// One answer of type T.
#define METAPROF_SIZE(name, BEFORE, T)                                           \
  METAPROF_CUDA int name(METAPROF_WORDS_##BEFORE, std::add_pointer_t<T> bytes) { \
    return metaprof::emulator::no_bytes(bytes);                                  \
  }
/// The same for the four element types of a function: two prefixes for the real ones, two for the complex ones.
#define METAPROF_SIZE_OF_4(prefix, real, complex, BEFORE, T) \
  METAPROF_SIZE(prefix##S##real, BEFORE, T)                  \
  METAPROF_SIZE(prefix##D##real, BEFORE, T)                  \
  METAPROF_SIZE(prefix##C##complex, BEFORE, T)               \
  METAPROF_SIZE(prefix##Z##complex, BEFORE, T)
/// Two answers: bytes on the device and on the host.
#define METAPROF_TWO_SIZES(name, BEFORE)                                                    \
  METAPROF_CUDA int name(METAPROF_WORDS_##BEFORE, size_t* on_device, size_t* on_host) {     \
    return metaprof::emulator::no_bytes(on_device) + metaprof::emulator::no_bytes(on_host); \
  }
