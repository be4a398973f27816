#pragma once
// Memory of the devices: who holds which addresses, and how many bytes are in use. Nothing is stored behind an address
// of a device. All functions lock machine_mutex().

#include <cstddef>
#include <cstdint>
#include <optional>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

enum class Kind { device, pinned, registered, managed, mapped };

struct Range {
  uintptr_t base = 0;
  size_t bytes = 0;
  Kind kind = Kind::device;
  int device = 0;
  size_t charged = 0;  ///< bytes of the device's memory that it takes
};

/// A block of the device's memory, `bytes` rounded up to 512. 0: the device is full. `function` is for the log.
METAPROF_EXPORT uintptr_t allocate(int device, size_t bytes, const char* function);
/// False: no block of this kind begins there.
METAPROF_EXPORT bool release(uintptr_t address, Kind kind, const char* function);

/// Host memory that CUDA knows of. False: a part of it is known already.
METAPROF_EXPORT bool add_host_range(uintptr_t address, size_t bytes, Kind kind, int device);
/// Such memory in fresh pages, which read as zero and take memory only where they are touched. Null: there is none.
METAPROF_EXPORT void* allocate_host(size_t bytes, Kind kind, int device);
/// False: no such memory of this kind begins there. `function` is for the log.
METAPROF_EXPORT bool free_host(void* address, Kind kind, const char* function);

/// What holds this address.
METAPROF_EXPORT std::optional<Range> find_range(const void* address);
/// Whether the address can only be a device's, allocated or not.
METAPROF_EXPORT bool is_device_address(const void* address);

/// With the context (METAPROF_EMULATOR_CONTEXT).
METAPROF_EXPORT size_t memory_in_use(int device);
METAPROF_EXPORT size_t memory_total();

/// Addresses alone, for virtual memory management; `at` is a wish, 0 if none.
METAPROF_EXPORT uintptr_t reserve_addresses(size_t bytes, size_t alignment);
/// Bytes of a device without an address. False: the device is full.
METAPROF_EXPORT bool take_bytes(int device, size_t bytes, const char* function);
METAPROF_EXPORT void give_back_bytes(int device, size_t bytes, const char* function);
METAPROF_EXPORT void add_mapping(uintptr_t address, size_t bytes, int device);
METAPROF_EXPORT bool remove_mapping(uintptr_t address, size_t bytes);

/// An address range for memory of another process or for a variable of device code: takes no memory.
METAPROF_EXPORT uintptr_t borrow_addresses(int device, size_t bytes);

}  // namespace metaprof::emulator
