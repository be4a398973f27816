#pragma once
// A storage in words that people know: what it is, and who made it.

#include <optional>
#include <string>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

struct LargeStorage {
  uint32_t storage = 0;  ///< its number in the trace
  Bytes bytes;
  Category category = Category::activation;
  std::optional<Sizes> shape;  ///< nothing: no tensor of it was seen, as of a workspace
  DType dtype = DType::f32;    ///< of that tensor
  std::string name;            ///< of a parameter, a buffer or a workspace; of a gradient or the optimizer's
                               ///< state: the parameter's; may be empty
  std::string op, module;      ///< that made it; may be empty
};

/// Describes storages of one trace, which must outlive it.
class StorageDescriber {
 public:
  explicit StorageDescriber(const Trace& trace);
  /// Its bytes and category are those with which it was born.
  LargeStorage describe(uint32_t storage) const;

 private:
  const Trace& trace_;
  const std::vector<const TensorRecord*> tensors_;
  std::vector<const ParameterRecord*> parameters_;  // by storage; null: none
};

}  // namespace metaprof
