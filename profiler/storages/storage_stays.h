#pragma once
// How long each storage is alive and as what: from these, what is alive at any moment of a run.

#include <vector>

#include "core/device.h"
#include "profiler/storages/large_storage.h"

namespace metaprof {

/// From one event on, up to another, a storage is alive and of one category.
struct StorageStay {
  LargeStorage storage;        ///< with the category that it has meanwhile
  uint32_t from = 0;           ///< index of the event with which it begins
  uint32_t to = kUntilTheEnd;  ///< … with which it ends
  static constexpr uint32_t kUntilTheEnd = UINT32_MAX;
};

/// Of one device, in the order in which they begin. At every event their bytes sum to those of LiveStorages.
/// Events from `end` on do not count.
std::vector<StorageStay> storage_stays(const Trace& trace, Device device, size_t end = SIZE_MAX);

}  // namespace metaprof
