#pragma once
// The type of a value of a graph. Of a tensor as much is known as somebody found out: nothing, or its dtype and
// number of dimensions (what an argument specification says), or all of its geometry.

#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace metaprof::ir {

/// What is known of a tensor; nothing: it is not known.
struct TensorDetail {
  std::optional<DType> dtype;
  std::optional<int> rank;                    ///< number of dimensions
  std::vector<std::optional<int64_t>> sizes;  ///< per dimension, or empty
  std::optional<Sizes> strides;
  std::optional<DeviceType> device;
  std::optional<bool> requires_grad;
  std::optional<bool> defined;  ///< false: it is an undefined tensor, the zero of autograd
  friend bool operator==(const TensorDetail&, const TensorDetail&) = default;
};

struct Type {
  enum class Kind : uint8_t {
    tensor,
    tensors,
    integer,
    real,
    boolean,
    scalar,  ///< a number of any kind
    string,
    integers,
    reals,
    booleans,
    device,
    none,
    any
  };

  Type(Kind kind = Kind::any) : kind(kind) {}
  explicit Type(TensorDetail tensor) : kind(Kind::tensor), tensor(std::move(tensor)) {}

  Kind kind;
  bool optional = false;
  TensorDetail tensor;  ///< of a list: whether one of its tensors requires grad, and nothing else

  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_tensors() const { return kind == Kind::tensors; }
  /// As far as it is known; a tensor of which nothing is known may require grad.
  bool may_require_grad() const {
    return (is_tensor() || is_tensors()) && tensor.requires_grad.value_or(true) && tensor.defined != false;
  }
  friend bool operator==(const Type&, const Type&) = default;
};

/// "Tensor(f32[*,4] cpu grad)", "Tensor[](no_grad)", "int?" …
std::string to_string(const Type& type);
std::string_view word_of(Type::Kind kind);
/// The kind that a word names; nothing if it names none.
std::optional<Type::Kind> kind_named(std::string_view word);
/// What is true of both: the type of a value that comes from either.
Type common_type(const Type& a, const Type& b);

}  // namespace metaprof::ir
