#include "program/pt2/numbers.h"

#include <fmt/format.h>

namespace metaprof {

DType read_dtype(Json number) {
  switch (number.integer()) {
    case 1: return DType::u8;
    case 2: return DType::i8;
    case 3: return DType::i16;
    case 4: return DType::i32;
    case 5: return DType::i64;
    case 6: return DType::f16;
    case 7: return DType::f32;
    case 8: return DType::f64;
    case 9: return DType::c32;
    case 10: return DType::c64;
    case 11: return DType::c128;
    case 12: return DType::b8;
    case 13: return DType::bf16;
    case 28: return DType::u16;
    case 29: return DType::f8_e4m3fn;
    case 30: return DType::f8_e5m2;
    case 31: return DType::f8_e4m3fnuz;
    case 32: return DType::f8_e5m2fnuz;
    default: number.reject(fmt::format("unknown dtype, scalar type {}", number.text()));
  }
}

MemoryFormat read_memory_format(Json number) {
  switch (number.integer()) {
    case 1: return MemoryFormat::contiguous;
    case 2: return MemoryFormat::channels_last;
    case 3: return MemoryFormat::channels_last_3d;
    case 4: return MemoryFormat::preserve;
    default: number.reject(fmt::format("unknown memory format {}", number.text()));
  }
}

// The schema counts unknown, coo, csr, csc, bsr, bsc, mkldnn, strided; c10 counts strided, sparse (coo), csr,
// mkldnn, csc, bsr, bsc.
int64_t read_layout(Json number) {
  switch (number.integer()) {
    case 1: return 1;
    case 2: return 2;
    case 3: return 4;
    case 4: return 5;
    case 5: return 6;
    case 6: return 3;
    case 7: return 0;
    default: number.reject(fmt::format("unknown layout {}", number.text()));
  }
}

std::optional<Device> read_device(Json device) {
  const std::string_view type = device.at("type").raw_string();
  const Json index = device.find("index");
  const int64_t number = index ? index.integer() : 0;
  if (number < -1 || number > 127) index.reject(fmt::format("a device index of {} is out of range", number));
  if (type == "cpu") return Device{DeviceType::cpu, 0};
  if (type == "cuda") return Device{DeviceType::cuda, static_cast<int8_t>(number < 0 ? 0 : number)};
  return std::nullopt;
}

}  // namespace metaprof
