#pragma once
// The memory figures of profiler/modules/modules.h, by text of the module's path.

#include <unordered_map>

#include "meta/trace/trace.h"

namespace metaprof {

struct ModuleMemory {
  Bytes tmp, out;
};
using MemoryByModule = std::unordered_map<std::string_view, ModuleMemory>;

/// Of the first forward: `forward_tmp` and `forward_out`. Keys are the trace's own texts.
MemoryByModule forward_memory(const Trace& trace, Device device);
/// Of the first backward: `backward_tmp` and `backward_out`.
MemoryByModule backward_memory(const Trace& trace, Device device);

}  // namespace metaprof
