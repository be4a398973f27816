#pragma once
// Models as Hugging Face's `config.json` describes them: no weights, no Python, no export. What is built runs the
// operators that the class of transformers 5.17 runs for an unpadded batch (docs/how_to/configs.md).

#include <string>

#include "program/config/layers/config.h"
#include "program/program.h"

namespace metaprof {

/// True if the path is a `.json` file or a folder.
bool is_config_path(const std::string& path);

/// A configuration that was read once, for inputs of any sizes. Several threads may build programs of one.
class ConfigFile {
 public:
  /// `path`: the file, or a folder with a `config.json`. Errors: no such file, too large.
  explicit ConfigFile(const std::string& path);
  /// A text with the name of its model.
  ConfigFile(std::string text, std::string name);

  /// Errors: as JsonDocument; `model_type` is missing or is of no family that is known; values that no model has.
  Program program(const InputSizes& sizes) const;

 private:
  std::string file_, text_, name_;
};

}  // namespace metaprof
