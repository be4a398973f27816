#include "core/dtype.h"

#include <array>

#include "core/error.h"

namespace metaprof {
namespace {

struct Facts {
  DType dtype;
  std::string_view short_name, long_name;
  int8_t size;
  char kind;  // 'f' floating, 'c' complex, 'i' integer, 'b' bool
};

constexpr Facts kTypes[] = {
    {DType::u8, "u8", "uint8", 1, 'i'},
    {DType::i8, "i8", "int8", 1, 'i'},
    {DType::i16, "i16", "int16", 2, 'i'},
    {DType::i32, "i32", "int32", 4, 'i'},
    {DType::i64, "i64", "int64", 8, 'i'},
    {DType::f16, "f16", "float16", 2, 'f'},
    {DType::f32, "f32", "float32", 4, 'f'},
    {DType::f64, "f64", "float64", 8, 'f'},
    {DType::c32, "c32", "complex32", 4, 'c'},
    {DType::c64, "c64", "complex64", 8, 'c'},
    {DType::c128, "c128", "complex128", 16, 'c'},
    {DType::b8, "b8", "bool", 1, 'b'},
    {DType::bf16, "bf16", "bfloat16", 2, 'f'},
    {DType::f8_e5m2, "f8_e5m2", "float8_e5m2", 1, 'f'},
    {DType::f8_e4m3fn, "f8_e4m3fn", "float8_e4m3fn", 1, 'f'},
    {DType::f8_e5m2fnuz, "f8_e5m2fnuz", "float8_e5m2fnuz", 1, 'f'},
    {DType::f8_e4m3fnuz, "f8_e4m3fnuz", "float8_e4m3fnuz", 1, 'f'},
    {DType::u16, "u16", "uint16", 2, 'i'},
    {DType::u32, "u32", "uint32", 4, 'i'},
    {DType::u64, "u64", "uint64", 8, 'i'},
};

constexpr auto kByNumber = [] {
  std::array<Facts, 30> table{};
  for (const Facts& facts : kTypes) table[static_cast<size_t>(facts.dtype)] = facts;
  return table;
}();

const Facts& facts_of(DType dtype) { return kByNumber[static_cast<size_t>(dtype)]; }

}  // namespace

int64_t element_size(DType dtype) { return facts_of(dtype).size; }
std::string_view short_name(DType dtype) { return facts_of(dtype).short_name; }
std::string_view long_name(DType dtype) { return facts_of(dtype).long_name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const Facts& facts : kTypes)
    if (facts.short_name == name || facts.long_name == name) return facts.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_numbered(int64_t number) {
  if (number < 0 || number >= int64_t(kByNumber.size()) || kByNumber[size_t(number)].size == 0)
    return std::nullopt;
  return static_cast<DType>(number);
}

bool is_floating(DType dtype) { return facts_of(dtype).kind == 'f'; }
bool is_complex(DType dtype) { return facts_of(dtype).kind == 'c'; }
bool is_integral(DType dtype, bool with_bool) {
  return facts_of(dtype).kind == 'i' || (with_bool && dtype == DType::b8);
}

DType real_type(DType dtype) {
  switch (dtype) {
    case DType::c32: return DType::f16;
    case DType::c64: return DType::f32;
    case DType::c128: return DType::f64;
    default: return dtype;
  }
}

DType complex_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return DType::c32;
    case DType::f64: return DType::c128;
    case DType::bf16:
    case DType::f32: return DType::c64;
    default: return dtype;
  }
}

DType accumulate_type(DType dtype) { return is_reduced_floating(dtype) ? DType::f32 : dtype; }

DType promote(DType a, DType b) {
  if (a == b) return a;
  for (const DType dtype : {a, b})
    if (is_floating(dtype) && element_size(dtype) == 1)
      fail("promotion for float8 types is not supported, attempted to promote {} and {}", long_name(a),
           long_name(b));
  if (is_complex(a) || is_complex(b)) {
    DType other = is_complex(a) ? b : a, complex = is_complex(a) ? a : b;
    if (!is_complex(other) && !is_floating(other)) return complex;
    DType real = promote(real_type(a), real_type(b));
    return complex_type(real);
  }
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a)) {
    // f16 with bf16 has no common 16-bit type.
    if (element_size(a) == element_size(b)) return DType::f32;
    return element_size(a) > element_size(b) ? a : b;
  }
  if (a == DType::b8) return b;
  if (b == DType::b8) return a;
  auto is_unsigned = [](DType t) { return facts_of(t).short_name[0] == 'u'; };
  if (is_unsigned(a) == is_unsigned(b)) return element_size(a) > element_size(b) ? a : b;
  DType with_sign = is_unsigned(a) ? b : a, without = is_unsigned(a) ? a : b;
  if (without == DType::u8 && element_size(with_sign) == 1) return DType::i16;
  return with_sign;
}

}  // namespace metaprof
