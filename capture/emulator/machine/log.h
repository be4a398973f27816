#pragma once
// The log of a process (docs/explanation/emulator.md, "The log"): a line an event, written at once.

#include <cstddef>
#include <cstdint>
#include <string>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

void log_missing(const char* library, const char* function);
void log_device(int device, size_t bytes);
void log_taken(int device, uintptr_t address, size_t bytes, const char* function);
void log_given_back(int device, uintptr_t address, size_t bytes, const char* function);
void log_out_of_memory(int device, size_t bytes, const char* function);
METAPROF_EXPORT void log_plan(int64_t bytes, const char* source, const std::string& question);
METAPROF_EXPORT void log_communicator(int rank, int ranks);

}  // namespace metaprof::emulator
