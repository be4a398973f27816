#include "cli/run_options.h"

#include "core/error.h"

namespace metaprof {
namespace {

const char* title_of(RunOption::Group group) {
  switch (group) {
    case RunOption::Group::step: return "The step";
    case RunOption::Group::inputs: return "The inputs";
    case RunOption::Group::device: return "The device";
  }
  return "";
}

// Adds a row; `take` gets each text that was typed.
template <class Take>
void add_row(CLI::App& command, const RunOption& option, const std::string& argument,
             const std::string& standard, const Take& take) {
  if (option.argument.empty()) {
    command
        .add_flag_callback(
            option.flag(), [take] { take("true"); }, option.help)
        ->group(title_of(option.group));
    return;
  }
  CLI::Option* added = nullptr;
  if (option.repeated)
    added = command.add_option_function<std::vector<std::string>>(
        option.flag(),
        [take](const std::vector<std::string>& texts) {
          for (const std::string& text : texts) take(text);
        },
        option.help);
  else
    added = command.add_option_function<std::string>(option.flag(), take, option.help);
  added->option_text(argument)->group(title_of(option.group))->allow_extra_args(false)->default_str(standard);
}

}  // namespace

void add_run_options(CLI::App& command, RunOptions& options) {
  for (const RunOption& option : run_options())
    add_row(command, option, std::string(option.argument), to_text(option.value(options)),
            [&options, &option](const std::string& text) { set_from_text(options, option, text); });
}

void add_grid_options(CLI::App& command, Grid& grid) {
  for (const RunOption& option : run_options())
    add_row(command, option, std::string(option.argument) + (option.in_grid ? ",…" : ""),
            to_text(option.value(grid.common)),
            [&grid, &option](const std::string& text) { grid.add(option, text); });
}

CLI::Option* add_model(CLI::App& command, std::string& model, const std::string& what) {
  return command.add_option("MODEL", model, what)->option_text(" ")->required();
}

void add_json(CLI::App& command, std::string& file, const std::string& in_place_of) {
  command.add_option("--json", file, "write JSON to FILE; -: to stdout, in place of " + in_place_of)
      ->option_text("FILE");
}

bool was_given(const CLI::App& command, std::string_view option) {
  return command.get_option(std::string(option))->count() > 0;
}

void refuse_step_options(const CLI::App& command, std::string_view why) {
  for (const RunOption& option : run_options())
    if (option.group != RunOption::Group::device && was_given(command, option.flag()))
      fail("{} {}", option.flag(), why);
}

}  // namespace metaprof
