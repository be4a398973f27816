#pragma once
// The numbers of the serialized schema (torch/_export/serde/schema.py, PyTorch 2.11) in terms of c10's, which
// are what operators take. The two differ.

#include <optional>

#include "core/device.h"
#include "core/dtype.h"
#include "core/formats/json.h"
#include "core/shape.h"

namespace metaprof {

DType read_dtype(Json number);
MemoryFormat read_memory_format(Json number);
/// c10::Layout's number; 0 is strided.
int64_t read_layout(Json number);

/// Nothing for "meta", and for kinds of devices that are not known here.
std::optional<Device> read_device(Json device);

}  // namespace metaprof
