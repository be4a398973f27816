#include "tests/fuzz/random_values.h"

#include <array>
#include <limits>

namespace metaprof {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr std::array<DType, 12> kUsualTypes{DType::f32,  DType::f32, DType::f32, DType::f16,
                                            DType::bf16, DType::f64, DType::i64, DType::i64,
                                            DType::i32,  DType::u8,  DType::b8,  DType::c64};
constexpr std::array<DType, 9> kRareTypes{DType::i8,   DType::i16,     DType::c32,
                                          DType::c128, DType::f8_e5m2, DType::f8_e4m3fn,
                                          DType::u16,  DType::u32,     DType::u64};

DType random_dtype(Random& random) {
  return random.once_in(10) ? random.one_of(kRareTypes) : random.one_of(kUsualTypes);
}

Sizes random_sizes(Random& random) {
  static const std::vector<Sizes> kUsual{{},
                                         {1},
                                         {4},
                                         {8},
                                         {64},
                                         {2, 3},
                                         {3, 4},
                                         {4, 4},
                                         {8, 8},
                                         {16, 16},
                                         {2, 3, 4},
                                         {2, 4, 4},
                                         {1, 3, 8},
                                         {1, 3, 8, 8},
                                         {2, 4, 8, 8},
                                         {2, 2, 16, 16},
                                         {2, 4, 4, 8, 8}};
  static const std::vector<Sizes> kRare{{0},
                                        {2, 0},
                                        {1, 0, 3},
                                        {0, 0, 0, 0},
                                        {2147483648},
                                        {65536, 65536},
                                        {int64_t{1} << 40},
                                        {1, 1, 1, 1, 1, 1, 1, 1},
                                        {3, 1, 2, 1, 2, 1, 2}};
  if (random.once_in(12)) return random.one_of(kRare);
  if (!random.once_in(6)) return random.one_of(kUsual);
  Sizes sizes;
  for (size_t i = random.below(6); i > 0; --i) sizes.push_back(static_cast<int64_t>(random.below(9)));
  return sizes;
}

std::string random_text(Random& random) {
  static const std::vector<std::string> kTexts{"",
                                               "mean",
                                               "sum",
                                               "none",
                                               "ortho",
                                               "forward",
                                               "backward",
                                               "reflect",
                                               "constant",
                                               "circular",
                                               "replicate",
                                               "bilinear",
                                               "floor",
                                               "trunc",
                                               "tanh",
                                               "ij",
                                               "xy",
                                               "fro",
                                               "nuc",
                                               "reduced",
                                               "L",
                                               "N",
                                               "amax",
                                               "prod",
                                               "a\nb\x1b[31m",
                                               "\xc2\x9b[31m",
                                               "\xe2\x80\xae",
                                               "\xff\xfe",
                                               "aa->a",
                                               "ab,bc->ac",
                                               "a...b,",
                                               "->"};
  if (random.once_in(30)) return std::string(5000, 'x');
  return random.one_of(kTexts);
}

Device random_device(Random& random) {
  static const std::vector<Device> kDevices{kModelDevice, kModelDevice,          kHost,
                                            kFirstGpu,    {DeviceType::cuda, 3}, {DeviceType::cpu, 1}};
  return random.one_of(kDevices);
}

Sizes random_integers(Random& random, size_t count) {
  Sizes integers;
  for (; count > 0; --count) integers.push_back(random_integer(random));
  return integers;
}

Value::Reals random_reals(Random& random, size_t count) {
  Value::Reals reals;
  for (; count > 0; --count) reals.push_back(random_real(random));
  return reals;
}

Value::Booleans random_booleans(Random& random, size_t count) {
  Value::Booleans booleans;
  for (; count > 0; --count) booleans.push_back(random.once_in(2) ? 1 : 0);
  return booleans;
}

Operand constant(Value value) {
  Operand operand;
  operand.constant = std::move(value);
  return operand;
}

// Of the kind that the schema names.
Value constant_for(Random& random, const Argument& argument) {
  const size_t usual = argument.length > 0 ? static_cast<size_t>(argument.length) : 1 + random.below(3);
  const size_t count = random.once_in(8) ? random.below(7) : usual;
  switch (argument.type) {
    case Type::integer:
      return argument.list ? Value(random_integers(random, count)) : Value(random_integer(random));
    case Type::real:
    case Type::scalar:
      if (argument.list)
        return random.once_in(2) ? Value(random_reals(random, count)) : Value(random_integers(random, count));
      return random.once_in(2) ? Value(random_real(random)) : Value(random_integer(random));
    case Type::boolean:
      return argument.list ? Value(random_booleans(random, count)) : Value(random.once_in(2));
    case Type::string: return Value(random_text(random));
    case Type::dtype: return Value(random_dtype(random));
    case Type::layout: return Value(int64_t{0});
    case Type::device: return Value(random_device(random));
    case Type::memory_format: return Value(static_cast<int64_t>(random.below(4)));
    case Type::generator: return random.once_in(2) ? Value() : Value::generator();
    default: return random_constant(random);
  }
}

}  // namespace

int64_t random_integer(Random& random) {
  static const std::vector<int64_t> kRare{-1,
                                          -2,
                                          -3,
                                          -5,
                                          31,
                                          100,
                                          1 << 16,
                                          -100,
                                          kMost,
                                          kLeast,
                                          kMost - 1,
                                          int64_t{1} << 31,
                                          int64_t{1} << 40,
                                          -(int64_t{1} << 31),
                                          int64_t{1} << 62,
                                          kLeast + 1};
  return random.once_in(4) ? random.one_of(kRare) : static_cast<int64_t>(random.below(9));
}

double random_real(Random& random) {
  static const std::vector<double> kReals{0.0,
                                          0.5,
                                          1.0,
                                          2.0,
                                          0.1,
                                          -1.0,
                                          -1.5,
                                          1e308,
                                          -1e308,
                                          1e-300,
                                          9.3e18,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN()};
  return random.once_in(3) ? random.one_of(kReals) : kReals[random.below(5)];
}

TensorFacts random_tensor(Random& random) {
  TensorFacts facts;
  facts.dtype = random_dtype(random);
  facts.sizes = random_sizes(random);
  facts.strides = contiguous_strides(facts.sizes);
  if (!facts.strides.empty() && random.once_in(10)) facts.strides.back() = 0;
  if (facts.sizes.size() >= 2 && random.once_in(10)) {
    std::swap(facts.sizes[0], facts.sizes[1]);
    std::swap(facts.strides[0], facts.strides[1]);
  }
  if (random.once_in(20)) facts.offset = static_cast<int64_t>(random.below(5));
  if (random.once_in(15)) facts.device = kHost;
  return facts;
}

Value random_constant(Random& random) {
  const size_t count = random.below(5);
  switch (random.below(14)) {
    case 0: return Value();
    case 1: return Value(random_real(random));
    case 2: return Value(random.once_in(2));
    case 3: return Value::complex(random_real(random), random_real(random));
    case 4: return Value(random_text(random));
    case 5: return Value(random_integers(random, count));
    case 6: return Value(random_reals(random, count));
    case 7: return Value(random_booleans(random, count));
    case 8: return Value(random_device(random));
    case 9: return Value(random_dtype(random));
    case 10: return Value::generator();
    default: return Value(random_integer(random));
  }
}

Operand random_tensors(Random& random, size_t values, bool list) {
  Operand operand;
  if (values == 0) return constant(random_constant(random));
  operand.kind = list ? Operand::Kind::values : Operand::Kind::value;
  if (!list) {
    operand.value = static_cast<ValueId>(random.below(values));
    return operand;
  }
  for (size_t i = random.once_in(8) ? 0 : 1 + random.below(4); i > 0; --i)
    operand.values.push_back(random.once_in(20) ? kNoValue : static_cast<ValueId>(random.below(values)));
  return operand;
}

Operand random_operand(Random& random, size_t values) {
  switch (random.below(5)) {
    case 0: return random_tensors(random, values, false);
    case 1: return random_tensors(random, values, true);
    case 2:
      if (random.once_in(4)) {
        Operand operand;
        operand.kind = Operand::Kind::unknown;
        operand.text = "as_something";
        return operand;
      }
      [[fallthrough]];
    default: return constant(random_constant(random));
  }
}

Operand operand_for(Random& random, const Argument& argument, size_t values) {
  if (random.once_in(12)) return random_operand(random, values);
  if (argument.optional && random.once_in(2)) return constant({});
  if (argument.type == Type::tensor) return random_tensors(random, values, argument.list);
  return constant(constant_for(random, argument));
}

}  // namespace metaprof
