// Virtual memory management: addresses and memory apart (expandable segments).

#include <map>
#include <mutex>

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/memory/memory.h"

using namespace metaprof::emulator;

namespace {

struct AllocationProperties {  // CUmemAllocationProp
  int type, handles, location, device;
  void* security;
  unsigned char flags[8];
};
static_assert(sizeof(AllocationProperties) == 32);

struct Physical {
  AllocationProperties properties = {};
  size_t bytes = 0;
  int handles = 1, mappings = 0;  // its memory is given back when nothing is left of either
};

struct Mapping {
  uint64_t handle;
  size_t bytes;
};

std::mutex mutex;  // taken before machine_mutex()
uint64_t next_handle = 1;
std::map<uint64_t, Physical>& physical() {
  static auto* const kPhysical = new std::map<uint64_t, Physical>;
  return *kPhysical;
}
std::map<uintptr_t, Mapping>& mappings() {
  static auto* const kMappings = new std::map<uintptr_t, Mapping>;
  return *kMappings;
}

constexpr size_t kGranularity = size_t(2) << 20;
constexpr int kOnDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE

void drop_unused(std::map<uint64_t, Physical>::iterator it) {
  Physical& p = it->second;
  if (p.handles > 0 || p.mappings > 0) return;
  if (p.properties.location == kOnDevice) give_back_bytes(p.properties.device, p.bytes, "cuMemRelease");
  physical().erase(it);
}

}  // namespace

METAPROF_DRIVER cuMemGetAllocationGranularity(size_t* bytes, const AllocationProperties*, int) {
  *bytes = kGranularity;
  return success;
}

METAPROF_DRIVER cuMemAddressReserve(uintptr_t* out, size_t bytes, size_t alignment, uintptr_t, uint64_t) {
  if (const Error error = use_context()) return error;
  if (bytes == 0 || bytes % kGranularity != 0) return invalid_value;
  *out = reserve_addresses(bytes, alignment);
  return *out ? success : out_of_memory;
}
METAPROF_DRIVER cuMemAddressFree(uintptr_t, size_t) { return success; }

METAPROF_DRIVER cuMemCreate(uint64_t* out, size_t bytes, const AllocationProperties* properties, uint64_t) {
  if (const Error error = use_context()) return error;
  if (bytes == 0 || bytes % kGranularity != 0) return invalid_value;
  if (properties->location == kOnDevice) {
    if (!is_device(properties->device)) return invalid_device;
    if (!take_bytes(properties->device, bytes, "cuMemCreate")) return out_of_memory;
  }
  const std::lock_guard lock(mutex);
  *out = next_handle++;
  physical()[*out] = {*properties, bytes};
  return success;
}
METAPROF_DRIVER cuMemRelease(uint64_t handle) {
  const std::lock_guard lock(mutex);
  const auto it = physical().find(handle);
  if (it == physical().end() || it->second.handles == 0) return invalid_value;
  --it->second.handles;
  drop_unused(it);
  return success;
}

METAPROF_DRIVER cuMemMap(uintptr_t address, size_t bytes, size_t, uint64_t handle, uint64_t) {
  const std::lock_guard lock(mutex);
  const auto it = physical().find(handle);
  if (it == physical().end() || bytes > it->second.bytes || mappings().count(address)) return invalid_value;
  ++it->second.mappings;
  mappings()[address] = {handle, bytes};
  add_mapping(address, bytes, it->second.properties.device);
  return success;
}
METAPROF_DRIVER cuMemUnmap(uintptr_t address, size_t bytes) {
  const std::lock_guard lock(mutex);
  auto& all = mappings();
  auto it = all.lower_bound(address);
  if (it == all.end() || it->first != address) return invalid_value;
  for (; it != all.end() && it->first < address + bytes; it = all.erase(it)) {
    const auto owner = physical().find(it->second.handle);
    if (owner == physical().end()) continue;
    --owner->second.mappings;
    drop_unused(owner);
  }
  remove_mapping(address, bytes);
  return success;
}
METAPROF_DRIVER cuMemSetAccess(uintptr_t, size_t, const void*, size_t) { return success; }
METAPROF_DRIVER cuMemGetAccess(uint64_t* flags, const void*, uintptr_t) {
  *flags = 3;  // read and write
  return success;
}
METAPROF_DRIVER cuMemRetainAllocationHandle(uint64_t* out, uintptr_t address) {
  const std::lock_guard lock(mutex);
  auto it = mappings().upper_bound(address);
  if (it == mappings().begin() || address - (--it)->first >= it->second.bytes) return invalid_value;
  *out = it->second.handle;
  ++physical().at(*out).handles;
  return success;
}
METAPROF_DRIVER cuMemGetAllocationPropertiesFromHandle(AllocationProperties* out, uint64_t handle) {
  const std::lock_guard lock(mutex);
  const auto it = physical().find(handle);
  if (it == physical().end()) return invalid_value;
  *out = it->second.properties;
  return success;
}
