#pragma once
// Tensors against recorded ones.

#include <string>

#include "meta/tensor/tensor.h"
#include "validation/comparison/storage_map.h"
#include "validation/recordings/recorded_value.h"

namespace metaprof {

/// Sizes, strides, offset, dtype, layout and host or device are those of the recording.
bool same_geometry(const RecordedTensor& recorded, const Tensor& ours);
/// … and the storage is the one that stands for the recorded one.
bool same_tensor(const RecordedTensor& recorded, const Tensor& ours, StorageMap& map);
/// A tensor as recordings print it, with the recording's storage numbers; "@?7" is one that it does not have.
std::string show(const Tensor& ours, const StorageMap& map);
std::string show(const RecordedTensor& recorded);
std::string show(const RecordedValue& recorded);

}  // namespace metaprof
