#pragma once
// An operator's signature, written as the framework writes it:
//
//   addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
//
// Names carry a hash computed when the program is compiled, so that kernels and formulas ask for
// `c["mat1"]` without comparing text.

#include <string>
#include <string_view>
#include <vector>

#include "meta/tensor/value.h"

namespace metaprof {

constexpr uint32_t name_hash(std::string_view name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

/// The name of an argument or result. Two names of one schema never share a hash (checked when it is parsed).
struct Name {
  constexpr Name() = default;
  consteval Name(const char* text) : text(text), hash(name_hash(text)) {}
  std::string_view text;
  uint32_t hash = 0;
};

enum class Type : uint8_t {
  tensor,
  scalar,
  integer,
  real,
  boolean,
  string,
  dtype,
  layout,
  device,
  memory_format,
  generator,
  dimname,
  other
};

/// What an argument is for, where its value in an export was decided by how the model was exported: it decides
/// what becomes of it when the model is run in another way. The framework gives arguments of one use one name in
/// all schemas.
enum class Role : uint8_t {
  none,
  training_flag,    ///< train, training: the operator behaves as in training
  statistics_flag,  ///< use_input_stats: so it does outside training too, unless it is given running statistics
  dropout_probability,  ///< dropout_p: zero outside training
  cudnn_flag,           ///< cudnn_enabled: cuDNN may be used; exporters switch it off while they trace
  length,               ///< end, n, m: a number of elements to make
  sizes,                ///< size, shape: of the result
  repeats               ///< repeats: per dimension
};

struct Argument {
  std::string name;
  uint32_t hash = 0;
  Type type = Type::other;
  bool list = false;               ///< Tensor[], int[] …
  bool optional = false;           ///< Tensor?, int? …, int[]?
  bool optional_elements = false;  ///< Tensor?[]
  int64_t length = 0;              ///< int[2]: a single number stands for two
  bool keyword_only = false;
  bool alias = false;    ///< (a), (a!) …
  bool written = false;  ///< (a!): the operator mutates it
  char alias_set = 0;
  Role role = Role::none;
  bool has_default = false;
  Value default_value;

  bool is_tensor() const { return type == Type::tensor && !list; }
  bool is_tensors() const { return type == Type::tensor && list; }
};

struct Schema {
  std::string name;      ///< "aten::add"
  std::string overload;  ///< "Tensor", or empty
  std::vector<Argument> arguments;
  std::vector<Argument> returns;  ///< names are "result", "result0" … where the schema gives none

  /// "aten::add.Tensor"
  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  /// Index of an argument; -1 if there is none of this name.
  int find(uint32_t hash) const;
  /// Index of the argument that a call passes by this name, or at this position where the name is empty; -1: there is
  /// none.
  int place_of(std::string_view name, size_t position) const;
  int find_return(uint32_t hash) const;
};

/// Parses one schema; without a namespace it is "aten". An Error says what is wrong and where.
Schema parse_schema(std::string_view text);

}  // namespace metaprof
