#include "cli/metaprof.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>

#include "cli/console.h"
#include "cli/help.h"
#include "core/error.h"
#include "core/option_value.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "What one training step costs - bytes, FLOPs, per layer, and who holds the peak - before anyone runs "
    "it.\n"
    "\n"
    "  metaprof profile model.pt2                     a step of AdamW in fp32 on an H200\n"
    "  metaprof profile model.pt2 --device rtx4090 --precision amp-bf16\n"
    "  metaprof fit model.pt2 --device rtx4090        the largest batch that fits\n"
    "  metaprof sweep model.pt2 --batch 1,2,4,8       a table over options\n"
    "  metaprof diff before.json after.json           what differs between two profiles\n"
    "  metaprof plan-input model.pt2 --format rotor   records for planners of checkpointing\n"
    "  metaprof run -- python train.py                a whole program, on a GPU that need not be there\n"
    "  metaprof advise model.pt2 --device rtx4090     what helps it to fit\n"
    "  metaprof devices                               the devices that are known\n"
    "  metaprof ops softmax                           what is known of the operators with this word\n"
    "  metaprof check model.pt2 --against measured.json\n"
    "  metaprof allocator --replay gpt2.log.gz        the caching allocator against a recording\n"
    "  metaprof COMMAND --help                        examples and options of a command\n";

// "metaprof profile" once it is known which command was given.
std::string command_of(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) return "metaprof " + command->get_name();
  return "metaprof";
}

void expect_command(const CLI::App& app, int count, char** words) {
  std::string names;
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (count > 1 && command->get_name() == words[1]) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
    known.push_back(command->get_name());
  }
  if (count < 2) fail("which command? There are {}; metaprof --help shows examples", names);
  const std::string_view word = words[1];
  if (!word.starts_with('-'))
    fail("there is no command '{}'; there are {}{}", word, names, did_you_mean(word, known));
  if (word != "-h" && word != "--help" && word != "--version")
    fail("the command comes before '{}'; there are {}", word, names);
}

// The option that an unknown one was probably meant to be.
std::string meant_option(const CLI::App& app, int count, char** words) {
  for (const CLI::App* command : app.get_subcommands()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (int i = 2; i < count; ++i) {
      const std::string word = std::string(words[i]).substr(0, std::string_view(words[i]).find('='));
      if (word.starts_with("--") && std::ranges::find(known, word) == known.end())
        return did_you_mean(word, known);
    }
  }
  return "";
}

int run(CLI::App& app, int count, char** words, const int& exit_code) {
  expect_command(app, count, words);
  try {
    app.parse(count, words);
  } catch (const CLI::Success& asked) {  // --help
    app.exit(asked);
    return kFine;
  } catch (const CLI::ParseError& error) {
    fail("{} ('{} --help' shows the options){}", error.what(), command_of(app),
         meant_option(app, count, words));
  }
  return exit_code;
}

}  // namespace

int run_metaprof(int count, char** words) {
  // "metaprof help fit" is "metaprof fit --help", and "metaprof help" is "metaprof --help".
  char help[] = "--help", *asked[] = {words[0], count > 2 ? words[2] : help, help};
  if (count > 1 && std::string_view(words[1]) == "help") count = count > 2 ? 3 : 2, words = asked;
  CLI::App app(kDescription, "metaprof");
  app.require_subcommand(1);
  app.set_version_flag("--version", "metaprof " METAPROF_VERSION);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(28);
  int exit_code = kFine;
  add_profile_command(app, exit_code);
  add_ops_command(app, exit_code);
  add_allocator_command(app, exit_code);
  add_check_command(app, exit_code);
  add_fit_command(app, exit_code);
  add_diff_command(app, exit_code);
  add_sweep_command(app, exit_code);
  add_plan_input_command(app, exit_code);
  add_run_command(app, exit_code);
  add_advise_command(app, exit_code);
  add_devices_command(app, exit_code);
  try {
    const int status = run(app, count, words, exit_code);
    std::cout.flush();
    if (!std::cout) fail("standard output cannot be written");
    return status;
  } catch (const Error& error) {
    message(error.what());
  } catch (const std::bad_alloc&) {
    message("out of memory: the model is too large for this machine");
  } catch (const std::exception& error) {
    message(std::string("internal error: ") + error.what());
  }
  return kBadInput;
}

}  // namespace metaprof
