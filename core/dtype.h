#pragma once
// Element types. The numbers are those of c10::ScalarType (PyTorch 2.11), because schemas, recordings and
// exported programs pass an element type as that number.

#include <cstdint>
#include <optional>
#include <string_view>

namespace metaprof {

enum class DType : int8_t {
  u8 = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  f16 = 5,
  f32 = 6,
  f64 = 7,
  c32 = 8,
  c64 = 9,
  c128 = 10,
  b8 = 11,
  bf16 = 15,
  f8_e5m2 = 23,
  f8_e4m3fn = 24,
  f8_e5m2fnuz = 25,
  f8_e4m3fnuz = 26,
  u16 = 27,
  u32 = 28,
  u64 = 29,
};

/// Bytes of one element.
int64_t element_size(DType);
/// Short name as recordings spell it: "f32", "bf16", "i64", "b8" …
std::string_view short_name(DType);
/// Name as the framework spells it: "float32", "bfloat16", "bool" …
std::string_view long_name(DType);
/// From either spelling; nothing if there is no such type.
std::optional<DType> dtype_named(std::string_view name);
/// From c10's number; nothing if there is no such type.
std::optional<DType> dtype_numbered(int64_t number);

bool is_floating(DType);
bool is_complex(DType);
/// Integer types; bool counts only if asked for.
bool is_integral(DType, bool with_bool);
inline bool is_reduced_floating(DType t) { return t == DType::f16 || t == DType::bf16; }
/// Gradients exist for floating and complex elements only.
inline bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }

/// The type of the result of mixing two types (c10::promoteTypes).
DType promote(DType, DType);
/// f16 → f32, bf16 → f32, others themselves: the type in which CUDA kernels accumulate.
DType accumulate_type(DType);
/// The real type of a complex one (c64 → f32), others themselves.
DType real_type(DType);
/// The complex type of a real one (f32 → c64), complex ones themselves.
DType complex_type(DType);

}  // namespace metaprof
