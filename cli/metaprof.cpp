#include "cli/metaprof.h"

#include <exception>
#include <iostream>
#include <new>

#include "cli/console.h"
#include "cli/help.h"
#include "core/error.h"

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
  for (const CLI::App* command : app.get_subcommands({})) {
    if (count > 1 && command->get_name() == words[1]) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  if (count < 2) fail("which command? There are {}; metaprof --help shows examples", names);
  const std::string_view word = words[1];
  if (!word.starts_with('-')) fail("there is no command '{}'; there are {}", word, names);
  if (word != "-h" && word != "--help") fail("the command comes before '{}'; there are {}", word, names);
}

int run(CLI::App& app, int count, char** words, const int& exit_code) {
  expect_command(app, count, words);
  try {
    app.parse(count, words);
  } catch (const CLI::Success& asked) {  // --help
    app.exit(asked);
    return kFine;
  } catch (const CLI::ParseError& error) {
    fail("{} ('{} --help' shows the options)", error.what(), command_of(app));
  }
  return exit_code;
}

}  // namespace

int run_metaprof(int count, char** words) {
  CLI::App app(kDescription, "metaprof");
  app.require_subcommand(1);
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
