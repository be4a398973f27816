#pragma once
// Temporary memory of CUB (CCCL 3.0, as in CUDA 13.0): what its host code asks for, which depends only on the
// number of elements, their sizes and the device's tuning. All results are bytes.

#include "meta/device/profile.h"

namespace metaprof {

/// DeviceRadixSort::SortPairs over `bits` bits of the key.
int64_t cub_sort_bytes(const DeviceProfile& device, int64_t count, int64_t key_bytes, int64_t value_bytes,
                       int64_t bits);
/// The framework's half types are classes to CUB; what is not primitive takes other temporaries.
bool cub_is_primitive(DType dtype);
/// DeviceScan over accumulators of this size.
int64_t cub_scan_bytes(int64_t count, int64_t accumulator_bytes, bool primitive = true);
/// DeviceSelect::UniqueByKey, UniqueCopy and the like, with 64-bit counts.
int64_t cub_select_bytes(int64_t count);

}  // namespace metaprof
