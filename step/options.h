#pragma once
// How a training step is run, and the one table of options. Commands, reports, recorded configurations and
// grids of runs read an option's name, values and purpose here. An option is added in this room alone: a field
// and a row.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/option_value.h"
#include "meta/optim/optimizer.h"
#include "meta/platform/planned_workspaces.h"

namespace metaprof {

class Questions;

enum class Precision : uint8_t { fp32, bf16, fp16, amp_bf16, amp_fp16 };
enum class Mode : uint8_t { train, eval, no_grad, inference };
/// How the model's forward and backward are run: operator by operator, or compiled as a graph.
enum class Execution : uint8_t { eager, graph };

/// What tensors that backward needs are kept as (torch.autograd.graph): `offload`: save_on_cpu(); `pack_…`:
/// saved_tensors_hooks whose pack function makes them 16-bit numbers.
enum class SavedHooks : uint8_t { none, offload, offload_pinned, pack_bf16, pack_fp16 };

/// The words of recorded configurations: "amp-bf16", "no-grad".
std::string_view to_string(Precision precision);
std::string_view to_string(Mode mode);
std::string_view to_string(Execution execution);
std::string_view to_string(SavedHooks hooks);
/// Errors: there is no such word; the message lists those that are.
Precision precision_named(std::string_view word);
Mode mode_named(std::string_view word);
Execution execution_named(std::string_view word);
SavedHooks saved_hooks_named(std::string_view word);
OptimizerImpl optimizer_impl_named(std::string_view word);

/// The lower precision that autocast chooses; nothing: it is off.
std::optional<DType> autocast_dtype(Precision precision);
/// The type of parameters, where the export has f32.
DType state_dtype(Precision precision);

/// Defaults are the framework's.
struct StepOptions {
  Precision precision = Precision::fp32;
  std::string optimizer = "adamw";  ///< one of optimizer_names()
  OptimizerImpl optimizer_impl = OptimizerImpl::standard;
  int steps = 3;
  int accumulate = 1;  ///< micro-batches per step
  std::optional<double> clip_norm, clip_value;
  bool zero_grad_to_none = true;
  bool channels_last = false;
  std::string checkpoint;  ///< shell wildcards within the segments of a module path; empty: none
  bool checkpoint_reentrant = false;
  Mode mode = Mode::train;
  bool anomaly = false;  ///< torch.autograd.set_detect_anomaly(True): gradients are looked through for NaN
  SavedHooks hooks = SavedHooks::none;
  /// Names of inputs, between commas or blanks: their gradients are taken (torch.autograd.grad) in place of a backward.
  std::string grad;
  bool create_graph =
      false;         ///< … with a graph, and the sum of their squares is a penalty that backward follows
  bool hvp = false;  ///< … with a graph, and they are differentiated again: the Hessian's product with ones
  std::string condition;     ///< of torch.cond: "true" or "false"; empty: the one with the higher peak
  std::optional<int> trips;  ///< of while_loop; nothing: one, beside two
  bool trims_gradients =
      true;  ///< false: rows that nobody asked for are computed, to see what they would cost
  Execution execution = Execution::eager;  ///< read by who makes the runner of run_steps (step.h)
  bool strict = false;                     ///< an unknown operator is an error
  std::map<std::string, std::string>
      environment;                          ///< of the process (meta/platform/platform.h, with_environment)
  PlannedWorkspaces* workspaces = nullptr;  ///< what libraries plan for one call; null: nothing
  Questions* questions =
      nullptr;  ///< gets what is asked of the device (meta/session/questions.h); may be null
  /// Options that were asked for, be it with their defaults: a captured program has steps of its own.
  std::set<std::string_view> given = {};
};

/// A step, where it is run, and on which inputs: what decides the result, apart from the model.
struct RunOptions {
  StepOptions step;
  std::string device = "h200";      ///< of known_hardware(), or a file *.json
  std::string memory;               ///< of the device, as 24GiB; empty: all that it has
  std::string framework;            ///< version of PyTorch, as 2.11; empty: the program's own
  std::string alloc_conf;           ///< as PYTORCH_ALLOC_CONF
  std::string workspaces = "auto";  ///< of cuDNN's plans: none, auto, or a file of measured ones
  std::string
      context;  ///< what the device's memory loses outside the allocator, as 500MiB; none; empty: as usual
  std::string margin = "0%";  ///< share of the device's memory to leave free
  std::string lora;  ///< adapters, as "r=16,targets=q_proj,v_proj"; empty: none (program/edits/lora.h)
  std::string
      base_weights;  ///< how linear modules keep weights (program/edits/base_weights.h); empty: in the precision
  std::string loss =
      "plain";  ///< of a configuration's language model; or "transformers": what its class computes of labels
  std::optional<int> kv_cache;  ///< tokens that are cached before the call of a decoder; nothing: no cache
  std::optional<int> batch, sequence;  ///< in place of the export's
  std::vector<std::string> settings;   ///< of single inputs, as "ids=4x512"
  std::vector<std::string> inputs;     ///< of a model of torch.jit.save, as "x=f32[8,3,224,224]" or "n=4"
};

/// The words of --optimizer: "none" and the optimizers.
std::vector<std::string> optimizer_names();

/// A row of the table.
struct RunOption {
  enum class Group : uint8_t { step, model, inputs, device };

  std::string_view name;      ///< in JSON, "clip_norm"; on the command line it is --clip-norm
  std::string_view argument;  ///< what help shows for its value; empty: a flag, which takes none
  Group group;
  std::string help;
  OptionRule rule;
  /// Several may be given (--env, --set): each is added. The value is all of them with blanks between.
  bool repeated = false;
  /// In a grid a list with commas gives one run for each value.
  bool in_grid = true;
  /// Reports of earlier versions do not have it.
  bool added_later = false;
  std::function<OptionValue(const RunOptions&)> value;
  /// The value is one that the rule allows, or monostate, which takes back what was given.
  std::function<void(RunOptions&, const OptionValue&)> set;

  /// "--clip-norm"
  std::string flag() const;
};

/// In the order in which reports show them.
const std::vector<RunOption>& run_options();
/// Errors: there is no such option.
const RunOption& run_option(std::string_view name);

/// Errors, with the option and what it takes: `text` is no value of it.
void set_from_text(RunOptions& options, const RunOption& option, std::string_view text);

}  // namespace metaprof
