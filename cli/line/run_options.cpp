#include "cli/line/run_options.h"

#include <cctype>
#include <cstdlib>

#include "cli/line/console.h"
#include "core/error.h"

namespace metaprof {
namespace {

const char* title_of(RunOption::Group group) {
  switch (group) {
    case RunOption::Group::step: return "The step";
    case RunOption::Group::model: return "The model";
    case RunOption::Group::inputs: return "The inputs";
    case RunOption::Group::device: return "The device";
  }
  return "";
}

// Adds a row; `take` gets each text that was typed.
// --alloc-conf: METAPROF_ALLOC_CONF
std::string variable_of(const RunOption& option) {
  std::string variable = "METAPROF_";
  for (const char c : option.name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

void add_row(Command& command, const RunOption& option, const std::string& argument,
             const std::string& standard, const std::function<void(const std::string&)>& take) {
  if (option.argument.empty())
    command
        .flag(
            option.flag(), [take] { take("true"); }, option.help)
        .group(title_of(option.group));
  else
    command.option(option.flag(), take, option.help, option.repeated)
        .value(argument)
        .group(title_of(option.group))
        .one_value()
        .with_default(standard);
}

}  // namespace

void add_run_options(Command& command, RunOptions& options) {
  for (const RunOption& option : run_options())
    add_row(command, option, std::string(option.argument), to_text(option.value(options)),
            [&options, &option](const std::string& text) { set_from_text(options, option, text); });
}

void add_epoch_options(Command& command, EpochOptions& options) {
  constexpr const char* kGroup = "An epoch of batches of different lengths";
  command
      .option(
          "--lengths", options.lengths,
          "run all batches, each padded to its longest sample: a FILE of the samples' tokens (812 93 …), how "
          "often each length comes (512:4000,1024:90), or batches (8x512 8x640)")
      .value("FILE|TEXT")
      .group(kGroup);
  const auto add_number = [&](const char* name, int64_t& value, const char* help) {
    command.option(name, value, help).value("N").group(kGroup).from_to(1, 1'000'000'000);
  };
  add_number("--bucket", options.bucket,
             "sort the samples of N batches by length before they become batches");
  add_number("--max-tokens", options.max_tokens, "as many samples in a batch as N tokens hold, with padding");
  add_number("--empty-cache-every", options.empty_cache_every,
             "call torch.cuda.empty_cache() after every N steps");
}

void check_epoch_options(const Command& command, const EpochOptions& options) {
  if (options.asked()) {
    if (command.was_given("--steps"))
      fail("--steps: --lengths says how many there are; leave one of them out");
    return;
  }
  for (const char* option : {"--bucket", "--max-tokens", "--empty-cache-every"})
    if (command.was_given(option)) fail("{} needs --lengths", option);
}

void take_environment(Command& command) {
  for (const RunOption& option : run_options()) command.take_environment(option.flag(), variable_of(option));
}

void add_grid_options(Command& command, Grid& grid) {
  for (const RunOption& option : run_options())
    add_row(command, option, std::string(option.argument) + (option.in_grid ? ",…" : ""),
            to_text(option.value(grid.common)),
            [&grid, &option](const std::string& text) { grid.add(option, text); });
}

AddedOption add_model(Command& command, std::string& model, const std::string& what) {
  command
      .option(
          "--interpreter", [](const std::string& program) { setenv("METAPROF_PYTHON", program.c_str(), 1); },
          "of a MODEL that is a module: the Python that has it; METAPROF_PYTHON [python, python3 of PATH]")
      .value("PROGRAM")
      .group("The model");
  return command.option("MODEL", model, what).value(" ").required();
}

void add_json(Command& command, std::string& file, const std::string& in_place_of) {
  command.option("--json", file, "write JSON to FILE; -: to stdout, instead of " + in_place_of).value("FILE");
}

void add_width(Command& command, int64_t& width) {
  width = static_cast<int64_t>(width_of_stdout());
  command.option("--width", width, "width of tables in characters; 0: unlimited")
      .value("N")
      .from_to(0, 100000)
      .with_default("the terminal's; for a file 0");
  command.take_environment("--width", "METAPROF_WIDTH");
}

void add_color(Command& command, std::string& when) {
  when = "auto";
  command
      .option("--color", when,
              "colors in the text: auto (on terminals, or if FORCE_COLOR is set, unless NO_COLOR is), "
              "always, never")
      .value("WHEN")
      .one_of({"auto", "always", "never"})
      .with_default();
  command.take_environment("--color", "METAPROF_COLOR");
}

void refuse_step_options(const Command& command, std::string_view why) {
  for (const RunOption& option : run_options())
    if (option.group != RunOption::Group::device && command.was_given(option.flag()))
      fail("{} {}", option.flag(), why);
}

}  // namespace metaprof
