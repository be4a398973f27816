#pragma once
// Models of torch.jit.save (TorchScript archives): read, followed with the inputs of a call, and written down as a
// program.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/dtype.h"
#include "core/shape.h"
#include "program/program.h"

namespace metaprof {

namespace script {
class ScriptArchive;
}

/// What an argument of forward is given: a tensor, or a number.
struct ScriptInput {
  std::optional<DType> dtype;  ///< of a tensor
  Sizes sizes;
  Value number;  ///< where there is no dtype
};

struct ScriptMode {
  bool training = true;   ///< as after model.train(), else as after model.eval()
  bool gradients = true;  ///< torch.is_grad_enabled()
  /// What tensors say that decide a branch; nothing: that is an error.
  std::optional<bool> condition = {};
};

/// A file that was read once, for inputs of any sizes. Several threads may build programs of one.
class ScriptFile {
 public:
  /// Errors: no archive of torch.jit.save; what its code or its attributes say wrong.
  explicit ScriptFile(const std::string& path);

  /// A value lives until its last use, as in the
  /// interpreter of torch.jit. Errors: an argument of forward has no input, or the other way round; the value of a tensor
  /// decides; an operator that is not known or refuses.
  Program program(const std::map<std::string, ScriptInput>& inputs, ScriptMode mode) const;

 private:
  std::shared_ptr<const script::ScriptArchive> archive_;
};

/// Whether the file is a zip archive with the code of torch.jit.save.
bool is_script_file(const std::string& path);

}  // namespace metaprof
