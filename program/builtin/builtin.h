#pragma once
// Models that are known by their names: configurations of Hugging Face (configs/), and models of torchvision that are
// written in C++.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "program/config/layers/config.h"
#include "program/program.h"

namespace metaprof {

/// Builds a model for inputs of any sizes. Several threads may call it. Errors: as ConfigFile::program.
using BuiltinModel = std::function<Program(const InputSizes&)>;

struct BuiltinName {
  std::string_view name;  ///< "llama-3.1-8b"
  std::string_view from;  ///< "transformers", "torchvision"
};
/// By name.
const std::vector<BuiltinName>& builtin_models();

/// The built-in model that a name of the Hub stands for, whatever its owner and case: "meta-llama/Llama-3.1-8B-Instruct" is
/// "llama-3.1-8b". Empty: there is none.
std::string builtin_named(std::string_view hub);

/// The text of a Hugging Face configuration. Empty: there is none of that name.
std::string_view builtin_config(std::string_view name);

/// Empty: there is none of that name.
BuiltinModel builtin_model(std::string_view name);

}  // namespace metaprof
