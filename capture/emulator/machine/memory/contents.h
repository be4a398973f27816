#pragma once
// The little that device memory does hold: small values that the host wrote and that went through a collective.
//
// A program agrees with its other ranks by writing numbers to the device, sending them around and reading them back
// (DDP: how many parameters each has). Were they zero, it would end. What was not in a collective reads as zero, as all
// else.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

constexpr size_t kMostContents = size_t(64) << 10;  ///< bytes of one value

/// The host wrote these bytes; more than kMostContents are not kept.
void remember_written(void* to, const void* from, size_t bytes);
/// What stands elsewhere on a device, or nothing, stands there now.
void copy_contents(void* to, const void* from, size_t bytes);
/// Something else stands there now.
METAPROF_EXPORT void forget_contents(void* at, size_t bytes);
/// Copies to the host: results of collectives, and zero elsewhere. Waits for what has not arrived yet.
void read_contents(void* host, const void* at, size_t bytes);

/// What a rank sends, if the host wrote something of it; the rest is zero. Waits for what has not arrived yet.
METAPROF_EXPORT std::optional<std::string> written_contents(const void* at, size_t bytes);
/// What a collective leaves.
METAPROF_EXPORT void put_result(void* at, std::string bytes);
/// What a collective will leave when other ranks have done their part: whoever reads it first calls `wait`, which gives
/// all of the bytes, or nothing if they are not known.
METAPROF_EXPORT void put_arrival(void* at, size_t bytes, std::function<std::optional<std::string>()> wait);

}  // namespace metaprof::emulator

/// For who knows what a kernel would have done with a small value: what the host or a collective left (1; 0: it is not
/// known), and what is to stand there as if a collective had left it.
METAPROF_CUDA int metaprof_emulator_known(const void* at, uint64_t bytes, void* out);
METAPROF_CUDA void metaprof_emulator_write(void* at, uint64_t bytes, const void* from);
