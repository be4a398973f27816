#pragma once
// What a stand-in shows to others. Everything else is hidden.

#define METAPROF_EXPORT __attribute__((visibility("default")))
/// A function of CUDA's interface.
#define METAPROF_CUDA extern "C" METAPROF_EXPORT
