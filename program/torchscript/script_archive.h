#pragma once
// A file of torch.jit.save: its code, and its module with every attribute. Tensors are described; their values stay in
// the file, but for constants without dimensions.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/formats/archive.h"
#include "core/formats/pickle_reader.h"
#include "core/shape.h"
#include "program/torchscript/code.h"

namespace metaprof::script {

/// A tensor of the file.
struct StoredTensor {
  std::string storage;  ///< tensors with the same one share memory
  DType dtype = DType::f32;
  Device device;
  Sizes sizes, strides;
  int64_t offset = 0;
  bool requires_grad = false;
};

class ScriptArchive {
 public:
  /// Errors: no archive of torch.jit.save; what its parts say wrong.
  explicit ScriptArchive(const std::string& path);

  const std::string& path() const { return path_; }
  const Code& code() const { return code_; }
  PickleValue module() const { return module_->root(); }
  /// CONSTANTS.cN; nothing: the file has no constants.
  std::optional<PickleValue> constants() const;
  /// The only element of a constant without dimensions on the host, read from the file; nothing: it is not of a kind that
  /// is read.
  std::optional<double> number_in(const StoredTensor& constant) const;

 private:
  std::string prefix_, path_;
  Archive archive_;
  Code code_;
  std::unique_ptr<Pickle> module_, constants_;
};

/// Whether it is a zip archive with the code of torch.jit.save.
bool is_script_archive(const std::string& path);

/// What _rebuild_tensor_v2 and its like are called for. Errors: another call; sizes that no tensor has.
StoredTensor stored_tensor(const PickleValue& call);
bool is_stored_tensor(const PickleValue& value);

}  // namespace metaprof::script
