#pragma once
// `--batch`, `--sequence` and `--set`: the inputs that a model is run with.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// `settings`: "NAME=4x512" gives an input tensor sizes, "NAME=7" a symbolic number, or a symbol, its value.
/// Batch size and sequence length go first. Errors: a setting is malformed, there is no such input; as
/// resize_input.
void set_inputs(Program& program, std::optional<int> batch, std::optional<int> sequence,
                const std::vector<std::string>& settings);

/// What --set says, by name. Errors: a setting is malformed.
std::map<std::string, Sizes> sizes_of_settings(const std::vector<std::string>& settings);

}  // namespace metaprof
