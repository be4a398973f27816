#pragma once
// What the user names - a model, a device, a file of text - as data.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meta/platform/measured_rates.h"
#include "meta/platform/platform.h"
#include "meta/trace/trace.h"
#include "program/builtin/builtin.h"
#include "program/program.h"
#include "program/torchscript/torchscript.h"
#include "step/options.h"

namespace metaprof {

/// A model that was read once, for any number of runs.
struct Model {
  Program program;
  std::optional<Trace> trace;  ///< a run that was kept (*.trace): it has no program
  BuiltinModel build;          ///< from a configuration, or built in: made anew for other inputs; else empty
  std::shared_ptr<const ScriptFile> script;  ///< of torch.jit.save: followed anew for other inputs; else null
  std::string inputs;  ///< that `program` was read with: as inputs_asked_by (run_groups.h)
  std::string name;

  bool is_trace() const { return trace.has_value(); }
};

/// `model`: a .pt2 (FILE.pt2:NAME where it holds several programs), its name (METAPROF_MODELS lists folders), an archive of
/// torch.jit.save, the name of a model that is built in, a Hugging Face config.json or its folder, the text of a program
/// (*.mp) or of a trace (*.trace). "-" is the standard input, in any of these forms but for archives of torch.jit.save.
/// Errors: no such file; as read_pt2, ScriptFile, ConfigFile, read_program_file and parse_trace.
/// `options`: those of the run, where there is one alone. A configuration is then built once, for its inputs.
Model read_model(const std::string& model, const RunOptions& options = {});

/// Error: the model is the saved program of a run that ended before its first step was whole. What a step takes is not known then.
void require_whole_step(const Model& model);

/// A program that was written in C++ (docs/how_to/nn.md), for estimate and its like.
Model model_of(Program program);

/// The model with the inputs that --batch, --sequence and --set ask for; nothing: the model has them. Errors: as
/// set_inputs; more positions than the model has.
std::optional<Program> changed_inputs(const Model& model, const RunOptions& options);
/// The same, copied where nothing changes.
Program with_inputs(const Model& model, const RunOptions& options);

/// As the program is where it is traced or a stream captured (Program::traced).
Program traced_with_inputs(const Model& model, const RunOptions& options);

/// What was noticed while the model was read, and that it is run by rules of another version than its own; a line
/// each. Errors: as framework_for.
std::vector<std::string> warnings_of(const Model& model, const RunOptions& options);

/// The device that --device and --memory describe. Errors: no such device; --memory is no size.
Platform device_of(const RunOptions& options);

/// What was measured on it, where --device is a file that says so.
MeasuredRates measured_rates(const RunOptions& options);

/// That device with the version of PyTorch that the program is run for. Errors: as framework_for.
Platform platform_of(const RunOptions& options, const Program& program);

/// The whole of a text file. Errors: no such file, too large.
std::string read_text_file(const std::string& path);

}  // namespace metaprof
