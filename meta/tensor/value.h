#pragma once
// A value that an operator takes or returns: what a schema's types can hold. Sixteen bytes; lists and text
// are shared and immutable. A value without a tensor may be copied by several threads at once (defaults of
// schemas, constants of a program that is run with several options); tensors belong to one session.

#include <string>
#include <vector>

#include "meta/tensor/tensor.h"

namespace metaprof {

class Value {
 public:
  enum class Kind : uint8_t {
    none,
    tensor,
    integer,
    real,
    boolean,
    complex,
    string,
    integers,
    reals,
    booleans,
    tensors,
    device,
    generator
  };

  using Integers = Sizes;
  using Reals = std::vector<double>;
  using Booleans = std::vector<char>;
  using Tensors = std::vector<Tensor>;  ///< elements may be undefined

  Value() = default;
  Value(std::nullptr_t) {}
  Value(Tensor tensor);
  Value(int integer) : Value(int64_t{integer}) {}
  Value(int64_t integer) : kind_(Kind::integer) { payload_.integer = integer; }
  Value(size_t integer) : Value(static_cast<int64_t>(integer)) {}
  Value(double real) : kind_(Kind::real) { payload_.real = real; }
  Value(bool boolean) : kind_(Kind::boolean) { payload_.integer = boolean; }
  Value(DType dtype) : Value(int64_t{static_cast<int8_t>(dtype)}) {}
  Value(MemoryFormat format) : Value(int64_t{static_cast<int8_t>(format)}) {}
  Value(Device device) : kind_(Kind::device) {
    payload_.integer = int64_t{static_cast<int8_t>(device.type)} << 8 | static_cast<uint8_t>(device.index);
  }
  Value(SizesView integers);
  Value(const Sizes& integers) : Value(SizesView(integers)) {}
  Value(std::initializer_list<int64_t> integers) : Value(SizesView(integers.begin(), integers.size())) {}
  Value(Reals reals);
  Value(Booleans booleans);
  Value(Tensors tensors);
  Value(std::string text);
  Value(const char* text) : Value(std::string(text)) {}
  static Value complex(double real, double imaginary);
  static Value generator();

  Value(const Value& other) : payload_(other.payload_), kind_(other.kind_) { retain(); }
  Value(Value&& other) noexcept : payload_(other.payload_), kind_(std::exchange(other.kind_, Kind::none)) {}
  Value& operator=(Value other) noexcept {
    std::swap(payload_, other.payload_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~Value() {
    if (kind_ == Kind::tensor || owns_object()) release();
  }

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_tensors() const { return kind_ == Kind::tensors; }
  bool is_number() const {
    return kind_ == Kind::integer || kind_ == Kind::real || kind_ == Kind::boolean || kind_ == Kind::complex;
  }

  // Each of these asks for a kind; asking for another is an Error that names both.
  const Tensor& tensor() const;  ///< none: an undefined tensor
  int64_t integer() const;
  double real() const;  ///< integers and booleans convert
  bool boolean() const;
  const Integers& integers() const;
  const Reals& reals() const;
  const Booleans& booleans() const;
  const Tensors& tensors() const;
  const std::string& string() const;
  Device device() const;

  /// Moves the tensor out.
  Tensor take_tensor();

 private:
  struct Object;
  template <class T>
  struct Box;
  template <class T>
  static Object* boxed(T value);
  bool owns_object() const {
    return kind_ == Kind::string || (kind_ >= Kind::integers && kind_ <= Kind::tensors) ||
           kind_ == Kind::complex;
  }
  void retain();
  void release();
  [[noreturn]] void wrong_kind(Kind wanted) const;

  union {
    int64_t integer;
    double real;
    TensorImpl* tensor;
    Object* object;
  } payload_ = {0};
  Kind kind_ = Kind::none;
};

std::string_view to_string(Value::Kind);
/// As recordings print it: f32[2,3], 1, 0.5, (1 2), "text", None …
std::string describe(const Value& value);

}  // namespace metaprof
