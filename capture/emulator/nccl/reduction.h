#pragma once
// Sums and the like of small values.

#include <optional>
#include <string>
#include <vector>

namespace metaprof::emulator::nccl {

/// Bytes of an element, by ncclDataType_t.
size_t element_bytes(int type);

/// All ranks' values as one, element by element; `operation` is an ncclRedOp_t. Nothing for dtypes and operations that
/// are not known here.
std::optional<std::string> reduce(const std::vector<std::string>& values, int type, int operation);

}  // namespace metaprof::emulator::nccl
