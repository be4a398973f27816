#include "meta/tensor/value.h"

#include <fmt/format.h>

#include <atomic>

#include "core/error.h"

namespace metaprof {

struct Value::Object {
  virtual ~Object() = default;
  std::atomic<uint32_t> owners = 1;
};

template <class T>
struct Value::Box final : Object {
  explicit Box(T value) : value(std::move(value)) {}
  T value;
};

template <class T>
Value::Object* Value::boxed(T value) {
  return new Box<T>(std::move(value));
}

namespace {
const Tensor kUndefined;
}  // namespace

Value::Value(Tensor tensor) {
  if (!tensor.defined()) return;
  kind_ = Kind::tensor;
  payload_.tensor = tensor.detach();
}
Value::Value(SizesView integers) : kind_(Kind::integers) {
  payload_.object = boxed<Integers>(Integers(integers));
}
Value::Value(Reals reals) : kind_(Kind::reals) { payload_.object = boxed<Reals>(std::move(reals)); }
Value::Value(Booleans booleans) : kind_(Kind::booleans) {
  payload_.object = boxed<Booleans>(std::move(booleans));
}
Value::Value(Tensors tensors) : kind_(Kind::tensors) { payload_.object = boxed<Tensors>(std::move(tensors)); }
Value::Value(std::string text) : kind_(Kind::string) {
  payload_.object = boxed<std::string>(std::move(text));
}

Value Value::complex(double real, double imaginary) {
  Value value;
  value.kind_ = Kind::complex;
  value.payload_.object = boxed<Reals>(Reals{real, imaginary});
  return value;
}

Value Value::generator() {
  Value value;
  value.kind_ = Kind::generator;
  return value;
}

void Value::retain() {
  if (kind_ == Kind::tensor) {
    Ref<TensorImpl>(payload_.tensor).detach();
  } else if (owns_object()) {
    payload_.object->owners.fetch_add(1, std::memory_order_relaxed);
  }
}

void Value::release() {
  if (kind_ == Kind::tensor) {
    Ref<TensorImpl>::adopt(payload_.tensor);
  } else if (payload_.object->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete payload_.object;
  }
}

std::string_view to_string(Value::Kind kind) {
  static constexpr std::string_view kNames[] = {"None",
                                                "a tensor",
                                                "an integer",
                                                "a number",
                                                "a boolean",
                                                "a complex number",
                                                "a string",
                                                "a list of integers",
                                                "a list of numbers",
                                                "a list of booleans",
                                                "a list of tensors",
                                                "a device",
                                                "a generator"};
  return kNames[static_cast<int>(kind)];
}

void Value::wrong_kind(Kind wanted) const { fail("expected {}, got {}", to_string(wanted), describe(*this)); }

const Tensor& Value::tensor() const {
  if (kind_ == Kind::none) return kUndefined;
  if (kind_ != Kind::tensor) wrong_kind(Kind::tensor);
  // A Tensor is one pointer, and so is the payload.
  static_assert(sizeof(Tensor) == sizeof(void*));
  return reinterpret_cast<const Tensor&>(payload_.tensor);
}

Tensor Value::take_tensor() {
  if (kind_ == Kind::none) return {};
  if (kind_ != Kind::tensor) wrong_kind(Kind::tensor);
  kind_ = Kind::none;
  return Ref<TensorImpl>::adopt(payload_.tensor);
}

int64_t Value::integer() const {
  if (kind_ == Kind::real) {
    constexpr double kBound = 0x1p63;
    if (!(payload_.real >= -kBound && payload_.real < kBound)) fail("{} is not an integer", describe(*this));
    return static_cast<int64_t>(payload_.real);
  }
  if (kind_ != Kind::integer && kind_ != Kind::boolean) wrong_kind(Kind::integer);
  return payload_.integer;
}

double Value::real() const {
  if (kind_ == Kind::real) return payload_.real;
  if (kind_ == Kind::integer || kind_ == Kind::boolean) return static_cast<double>(payload_.integer);
  if (kind_ == Kind::complex) return static_cast<Box<Reals>*>(payload_.object)->value[0];
  wrong_kind(Kind::real);
}

bool Value::boolean() const {
  if (kind_ != Kind::boolean && kind_ != Kind::integer) wrong_kind(Kind::boolean);
  return payload_.integer != 0;
}

const Value::Integers& Value::integers() const {
  if (kind_ != Kind::integers) wrong_kind(Kind::integers);
  return static_cast<Box<Integers>*>(payload_.object)->value;
}

const Value::Reals& Value::reals() const {
  if (kind_ != Kind::reals && kind_ != Kind::complex) wrong_kind(Kind::reals);
  return static_cast<Box<Reals>*>(payload_.object)->value;
}

const Value::Booleans& Value::booleans() const {
  if (kind_ != Kind::booleans) wrong_kind(Kind::booleans);
  return static_cast<Box<Booleans>*>(payload_.object)->value;
}

const Value::Tensors& Value::tensors() const {
  if (kind_ != Kind::tensors) wrong_kind(Kind::tensors);
  return static_cast<Box<Tensors>*>(payload_.object)->value;
}

const std::string& Value::string() const {
  if (kind_ != Kind::string) wrong_kind(Kind::string);
  return static_cast<Box<std::string>*>(payload_.object)->value;
}

Device Value::device() const {
  if (kind_ != Kind::device) wrong_kind(Kind::device);
  return {static_cast<DeviceType>(payload_.integer >> 8), static_cast<int8_t>(payload_.integer & 255)};
}

namespace {
template <class List, class Print>
std::string listed(const List& list, Print print) {
  std::string text = "(";
  for (const auto& element : list) {
    if (text.size() > 1) text += ' ';
    text += print(element);
  }
  return text + ")";
}
}  // namespace

std::string describe(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return "None";
    case Value::Kind::tensor: return describe(value.tensor());
    case Value::Kind::integer: return std::to_string(value.integer());
    case Value::Kind::real: return fmt::format("{}", value.real());
    case Value::Kind::boolean: return value.boolean() ? "True" : "False";
    case Value::Kind::complex: return fmt::format("{}+{}j", value.reals()[0], value.reals()[1]);
    case Value::Kind::string: return '"' + value.string() + '"';
    case Value::Kind::integers: return listed(value.integers(), [](int64_t i) { return std::to_string(i); });
    case Value::Kind::reals: return listed(value.reals(), [](double r) { return fmt::format("{}", r); });
    case Value::Kind::booleans: return listed(value.booleans(), [](char b) { return b ? "True" : "False"; });
    case Value::Kind::tensors: return listed(value.tensors(), [](const Tensor& t) { return describe(t); });
    case Value::Kind::device: return to_string(value.device());
    case Value::Kind::generator: return "generator";
  }
  return "?";
}

}  // namespace metaprof
