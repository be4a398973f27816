#include "cli/profile_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr const char* kStepGroup = "The step";
constexpr const char* kInputGroup = "The inputs";

// A group of options in the help.
struct Group {
  CLI::App& command;
  std::string title;

  /// `argument`: what the help shows for its value.
  template <class T>
  CLI::Option* add(const char* name, const char* argument, T& value, const std::string& what) {
    return command.add_option(name, value, what)
        ->option_text(argument)
        ->group(title)
        ->allow_extra_args(false);
  }
  void flag(const char* name, bool& value, const std::string& what) {
    command.add_flag(name, value, what)->group(title);
  }
};

void add_step_options(CLI::App& command, StepOptions& step) {
  Group group{command, kStepGroup};
  group.add("--precision", "WORD", step.precision, "fp32, bf16, fp16, amp-bf16 or amp-fp16")
      ->capture_default_str();
  group.add("--optimizer", "WORD", step.optimizer, "none, sgd, adamw …; an unknown word lists them")
      ->capture_default_str();
  group.add("--optimizer-impl", "WORD", step.optimizer_impl, "default, foreach, for-loop or fused")
      ->capture_default_str();
  group.add("--steps", "N", step.steps, "training steps in a row")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  group.add("--accumulate", "N", step.accumulate, "micro-batches of a step")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  group.add("--clip-norm", "X", step.clip_norm, "clip the norm of all gradients to X");
  group.add("--clip-value", "X", step.clip_value, "clip each gradient to X");
  group
      .add("--zero-grad-to-none", "BOOL", step.zero_grad_to_none,
           "true: let gradients go; false: fill them with 0")
      ->default_str("true");
  group.flag("--channels-last", step.channels_last, "parameters and inputs in channels_last");
  group.add("--checkpoint", "GLOB", step.checkpoint,
            "recompute these modules in backward: paths with shell wildcards within a segment");
  group.flag("--checkpoint-reentrant", step.checkpoint_reentrant, "… by the reentrant method");
  group.add("--mode", "WORD", step.mode, "train, eval, no-grad or inference")->capture_default_str();
  group.flag("--strict", step.strict, "an operator that is not known is an error");
}

void add_device_options(CLI::App& command, ProfileOptions& options) {
  Group group{command, "The device"};
  group.add("--device", "NAME", options.device, "h200, h100, a100, l40s, rtx4090, t4, cpu or FILE.json")
      ->capture_default_str();
  group.add("--memory", "SIZE", options.memory, "memory of the device, as 24GiB");
  group.add("--alloc-conf", "TEXT", options.alloc_conf, "as PYTORCH_ALLOC_CONF");
  group.add("--env", "NAME=VALUE", options.environment,
            "environment of the process: CUBLAS_WORKSPACE_CONFIG …");
  group
      .add("--workspaces", "WORD", options.workspaces,
           "of cuDNN's plans: none, auto or a FILE of measured ones")
      ->capture_default_str();
}

void add_input_options(CLI::App& command, ProfileOptions& options) {
  Group group{command, kInputGroup};
  group.add("--batch", "N", options.batch, "batch size in place of the export's")
      ->check(CLI::Range(1, 1 << 30));
  group.add("--sequence", "N", options.sequence, "sequence length in place of the export's")
      ->check(CLI::Range(1, 1 << 30));
  group.add("--set", "NAME=TEXT", options.settings, "shape (4x512) or value of an input");
}

void add_report_options(CLI::App& command, ProfileOptions& options) {
  Group group{command, "The report"};
  const std::vector<std::string> columns = module_column_names(), of_nodes = node_column_names();
  add_report_file_options(command, group.title, options.files);
  group.add("--write-trace", "FILE", options.write_trace, "write the run's events as text to FILE");
  group.add("--depth", "N", options.text.depth, "levels of the tree of modules to show; -1: all")
      ->capture_default_str();
  group.add("--sort", "COLUMN", options.text.sort,
            "sort by this column, the largest first; modules: among siblings");
  group.add("--top", "N", options.text.top, "only the N largest rows of all levels")
      ->check(CLI::Range(1, 1000000));
  group
      .add(
          "--columns", "LIST", options.text.columns,
          fmt::format("columns to show: {}; of nodes: {}", fmt::join(columns, ","), fmt::join(of_nodes, ",")))
      ->delimiter(',');
}

}  // namespace

void add_run_options(CLI::App& command, ProfileOptions& options) {
  command
      .add_option("MODEL", options.model,
                  "a .pt2, the name of one (METAPROF_MODELS lists folders), or a trace")
      ->option_text(" ")
      ->required();
  add_step_options(command, options.step);
  add_device_options(command, options);
  add_input_options(command, options);
}

void add_profile_options(CLI::App& command, ProfileOptions& options) {
  add_run_options(command, options);
  add_report_options(command, options);
}

void refuse_step_options(const CLI::App& command, std::string_view why) {
  for (const CLI::Option* option : command.get_options())
    if ((option->get_group() == kStepGroup || option->get_group() == kInputGroup) && option->count() > 0)
      fail("{} {}", option->get_name(), why);
}

std::vector<std::pair<std::string, OptionValue>> option_values(const ProfileOptions& options) {
  const StepOptions& step = options.step;
  const auto optional = [](const std::optional<double>& number) {
    return number ? OptionValue(*number) : OptionValue(std::monostate());
  };
  const auto text = [](const std::string& word) {
    return word.empty() ? OptionValue(std::monostate()) : OptionValue(word);
  };
  return {{"precision", step.precision},
          {"optimizer", step.optimizer},
          {"optimizer_impl", step.optimizer_impl},
          {"steps", int64_t{step.steps}},
          {"accumulate", int64_t{step.accumulate}},
          {"clip_norm", optional(step.clip_norm)},
          {"clip_value", optional(step.clip_value)},
          {"zero_grad_to_none", step.zero_grad_to_none},
          {"channels_last", step.channels_last},
          {"checkpoint", text(step.checkpoint)},
          {"checkpoint_reentrant", step.checkpoint_reentrant},
          {"mode", step.mode},
          {"batch", options.batch ? OptionValue(int64_t{*options.batch}) : OptionValue(std::monostate())},
          {"sequence",
           options.sequence ? OptionValue(int64_t{*options.sequence}) : OptionValue(std::monostate())},
          {"set", text(fmt::format("{}", fmt::join(options.settings, " ")))},
          {"alloc_conf", text(options.alloc_conf)},
          {"memory", text(options.memory)},
          {"workspaces", options.workspaces}};
}

}  // namespace metaprof
