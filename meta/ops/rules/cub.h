#pragma once
// Temporary memory of CUB (CCCL 3.0, as in CUDA 13.0): what its host code asks for. It depends only on the
// number of elements, their sizes and the tuning for the device (cub/device/dispatch/tuning). All results are
// bytes.

#include "core/dtype.h"
#include "meta/platform/platform.h"
#include "meta/session/call.h"

namespace metaprof {

/// The framework's half types are classes to CUB; what is not primitive takes other temporaries.
bool cub_is_primitive(DType dtype);

/// DeviceRadixSort over `bits` bits of the key with 64-bit counts; `value_bytes` 0: keys only.
int64_t cub_sort_bytes(const Hardware& device, int64_t count, int64_t key_bytes, int64_t value_bytes,
                       int64_t bits);
/// DeviceSegmentedRadixSort::SortPairs.
int64_t cub_segmented_sort_bytes(int64_t count, int64_t key_bytes, int64_t value_bytes);
/// DeviceScan with a functor of the framework's own over accumulators of this size.
int64_t cub_scan_bytes(int64_t count, int64_t accumulator_bytes, bool primitive = true);
/// DeviceScan::InclusiveSumByKey with keys and values of this size.
int64_t cub_scan_by_key_bytes(const Hardware& device, int64_t count, int64_t value_bytes);
/// DeviceSelect::UniqueByKey with 4-byte values and 64-bit counts.
int64_t cub_unique_by_key_bytes(const Hardware& device, int64_t count, int64_t key_bytes);
/// thrust::adjacent_difference from one array into another.
int64_t thrust_adjacent_difference_bytes();
/// thrust::inclusive_scan: sums of integers of 8 bytes.
int64_t thrust_sum_bytes(const Hardware& device, int64_t count);
/// thrust::unique of integers of 8 bytes with a comparison of the caller's own.
int64_t thrust_unique_bytes(int64_t count);
/// thrust::unique_by_key with keys and values of 8 bytes.
int64_t thrust_unique_by_key_bytes(const Hardware& device, int64_t count);
/// thrust::sort_by_key with a comparison of the caller's own: a merge sort. `value_bytes` 0: thrust::sort.
int64_t thrust_sort_by_key_bytes(int64_t count, int64_t key_bytes, int64_t value_bytes);
/// thrust::reduce_by_key with keys and sums of 8 bytes and a comparison of the caller's own.
int64_t thrust_reduce_by_key_bytes(int64_t count);
/// DeviceSelect::Unique with 32-bit counts.
int64_t cub_unique_bytes(const Hardware& device, int64_t count, int64_t element_bytes);
/// DeviceRunLengthEncode::Encode.
int64_t cub_run_length_bytes(int64_t count);
/// DeviceSelect::Flagged of places (8 bytes) with 32-bit counts.
int64_t cub_flagged_bytes(const Hardware& device, int64_t count);
/// DeviceReduce::Sum of 4-byte integers.
int64_t cub_sum_bytes(const Hardware& device, int64_t count);

/// One of these on the device of a call: cub_bytes<cub_sum_bytes>(call, count).
template <auto bytes, class... Numbers>
int64_t cub_bytes(const Call& call, Numbers... numbers) {
  return call.ask([=](const Platform& platform) { return bytes(platform.hardware, numbers...); });
}

}  // namespace metaprof
