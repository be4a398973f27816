#pragma once
// `--batch`, `--sequence`, `--set` and `--input`: the inputs that a model is run with.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/torchscript/torchscript.h"

namespace metaprof {

/// `settings`: "NAME=4x512" gives an input tensor sizes, "NAME=7" a symbolic number, or a symbol, its value.
/// Batch size and sequence length go first. Errors: a setting is malformed, there is no such input; as
/// resize_input.
void set_inputs(Program& program, std::optional<int> batch, std::optional<int> sequence,
                const std::vector<std::string>& settings);

/// What --set says, by name. Errors: a setting is malformed.
std::map<std::string, Sizes> sizes_of_settings(const std::vector<std::string>& settings);

/// What --input says, by name: x=f32[8,3] or n=4, a=0.5, b=true. `batch`: instead of the first size of the first tensor,
/// and of every other whose first size is the same. Errors: it is malformed; a name twice; a batch and no tensor.
std::map<std::string, ScriptInput> script_inputs(const std::vector<std::string>& inputs,
                                                 std::optional<int> batch = {});

}  // namespace metaprof
