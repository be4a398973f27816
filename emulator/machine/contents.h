#pragma once
// The little that device memory does hold: small values that the host wrote and that went through a collective.
//
// A program agrees with its other ranks by writing numbers to the device, sending them around and reading them back
// (DDP: how many parameters each has). Were they zero, it would end. What was not in a collective reads as zero, as all
// else.

#include <cstddef>
#include <optional>
#include <string>

#include "emulator/machine/export.h"

namespace metaprof::emulator {

/// The host wrote these bytes; more than 64 KiB are not kept.
void remember_written(void* to, const void* from, size_t bytes);
/// What stands elsewhere on a device, or nothing, stands there now.
void copy_contents(void* to, const void* from, size_t bytes);
/// Something else stands there now.
void forget_contents(void* at, size_t bytes);
/// What a copy to the host reads: the result of a collective, or nothing.
std::optional<std::string> readable_contents(const void* at, size_t bytes);

/// What a rank sends, if the host wrote it.
METAPROF_EXPORT std::optional<std::string> written_contents(const void* at, size_t bytes);
/// What a collective leaves.
METAPROF_EXPORT void put_result(void* at, std::string bytes);

}  // namespace metaprof::emulator
