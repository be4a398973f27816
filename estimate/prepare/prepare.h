#pragma once
// The first stage of an estimate: everything that the user named, settled once. Later stages parse and decide nothing.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/model.h"
#include "estimate/results/input_row.h"
#include "meta/platform/platform.h"
#include "step/options.h"

namespace metaprof {

/// `model` and `given` must outlive it.
struct PreparedRun {
  const Model& model;
  const RunOptions& given;  ///< as the user gave them
  RunOptions options;       ///< with those of the captured run where nothing was given
  Platform platform = {};   ///< device and version of PyTorch
  MemoryLimit memory = {};  ///< what the allocator can have
  std::optional<Program>
      changed;  ///< the program with other inputs; nothing: the model has those that were asked for

  const Program& program() const { return changed ? *changed : model.program; }
};

/// Errors: as platform_of, memory_limit and changed_inputs.
PreparedRun prepare(const Model& model, const RunOptions& given);

/// The tensors that a model is called with.
std::vector<InputRow> inputs_of(const Program& program);

/// All options with the values that were used. Without the device, which reports name apart.
std::vector<std::pair<std::string, OptionValue>> option_values(const RunOptions& options);

}  // namespace metaprof
