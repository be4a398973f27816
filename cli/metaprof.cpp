#include "cli/metaprof.h"

#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/commands/commands.h"
#include "cli/line/completion.h"
#include "cli/line/console.h"
#include "cli/line/defaults_file.h"
#include "cli/version.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "estimate/prepare/model.h"
#include "estimate/prepare/sizes.h"
#include "meta/platform/hardware.h"

namespace metaprof {
namespace {

constexpr const char* kProgramDescription =
    "What one training step costs, before anyone runs it: bytes, FLOPs per layer, what holds the peak.\n"
    "\n"
    "  metaprof profile model.pt2                     a step of AdamW in fp32 on an H200\n"
    "  metaprof profile model.pt2 --device rtx4090 --precision amp-bf16\n"
    "  metaprof rent meta-llama/Llama-3.1-8B          which cards a model needs\n"
    "  metaprof fit model.pt2 --device rtx4090        the largest batch that fits\n"
    "  metaprof sweep model.pt2 --batch 1,2,4,8       a table over options\n"
    "  metaprof diff before.json after.json           what differs between two profiles\n"
    "  metaprof plan-input model.pt2 --format rotor   records for planners of checkpointing\n"
    "  metaprof run -- python train.py                a whole program, without a GPU\n"
    "  metaprof cudagraphs model.pt2                  what capture as CUDA graphs would cost\n"
    "  metaprof graph model.pt2                       what compilation as a graph would change\n"
    "  metaprof advise model.pt2 --device rtx4090     which switches make it fit\n"
    "  metaprof plan model.pt2 --budget 24GiB         what to recompute so that it fits\n"
    "  metaprof devices                               the known devices\n"
    "  metaprof models                                the built-in models\n"
    "  metaprof inspect model.safetensors             what weight files contain\n"
    "  metaprof ops softmax                           the known operators with this word\n"
    "  metaprof check model.pt2 --against measured.json\n"
    "  metaprof allocator --replay gpt2.log.gz        the caching allocator against a recording\n"
    "  metaprof replay model.pt2 --device 0           a step on this machine's GPU, beside the estimate\n"
    "  metaprof measure --out card.json               what this machine's GPU has and can do, for --device\n"
    "  metaprof completion bash                       completion for a shell; metaprof man: the manual page\n"
    "  metaprof COMMAND --help                        examples and options of a command\n";

CompletionNames names_for_completion() {
  CompletionNames names;
  for (const BuiltinName& model : builtin_models()) names.models.emplace_back(model.name);
  for (const Hardware& device : known_hardware()) names.devices.emplace_back(device.name);
  return names;
}

// Texts about the program itself.
void add_text_commands(CommandLine& line) {
  Command completion = line.add("completion",
                                "Completion for a shell: bash, zsh or fish.\n\n"
                                "  source <(metaprof completion bash)\n"
                                "  metaprof completion fish > ~/.config/fish/completions/metaprof.fish\n");
  auto shell = std::make_shared<std::string>();
  completion.option("SHELL", *shell, "bash, zsh or fish").value(" ").required();
  completion.on_run([&line, shell] {
    std::cout << completion_text(line.commands(), names_for_completion(), *shell);
    return int{kFine};
  });
  line.add("man", "The manual page.\n\n  metaprof man | man -l -\n").on_run([&line] {
    std::cout << manual_page(line.commands(), "metaprof " METAPROF_VERSION, commit_date());
    return int{kFine};
  });
}

struct CommandEntry {
  std::string_view name;
  void (*add)(CommandLine& line);
};
constexpr CommandEntry kCommands[] = {
    {"profile", add_profile_command},
    {"ops", add_ops_command},
    {"allocator", add_allocator_command},
    {"check", add_check_command},
    {"rent", add_rent_command},
    {"fit", add_fit_command},
    {"diff", add_diff_command},
    {"together", add_together_command},
    {"sweep", add_sweep_command},
    {"plan-input", add_plan_input_command},
    {"run", add_run_command},
    {"explain", add_explain_command},
    {"selftest", add_selftest_command},
    {"cudagraphs", add_cudagraphs_command},
    {"graph", add_graph_command},
    {"advise", add_advise_command},
    {"plan", add_plan_command},
    {"devices", add_devices_command},
    {"frameworks", add_frameworks_command},
    {"schema", add_schema_command},
    {"inspect", add_inspect_command},
    {"models", add_models_command},
    {"replay", add_replay_command},
    {"measure", add_measure_command},
};

void add(CommandLine& line, const CommandEntry& entry) {
  entry.add(line);
  Command command = line.existing(std::string(entry.name));
  command
      .option(
          "--host-memory", [](const std::string& size) { limit_host_memory(parse_size(size).count); },
          "of this machine, what metaprof itself may take: 8GiB")
      .value("SIZE")
      .group("This machine")
      .one_value()
      .with_default("half of it");
  command.take_environment("--host-memory", "METAPROF_HOST_MEMORY");
}

// All commands, or the one whose name is the first word: a millisecond less at every start.
void add_commands(CommandLine& line, std::string_view first_word) {
  for (const CommandEntry& command : kCommands)
    if (command.name == first_word) return add(line, command);
  for (const CommandEntry& command : kCommands) add(line, command);
  add_text_commands(line);
}

}  // namespace

int run_metaprof(int count, char** words) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond `ulimit -f` is an error of the write
  CommandLine line(kProgramDescription, version_line());
  try {
    limit_host_memory(machine_memory() / 2);
    // A file of defaults has sections for all commands.
    const std::string file = defaults_file();
    add_commands(line, count > 1 && file.empty() ? words[1] : "");
    if (!file.empty() && count > 1) line.take_defaults(file, words[1]);
    const int status = line.run(count, words);
    std::cout.flush();
    if (!std::cout) fail("standard output cannot be written");
    return status;
  } catch (const Error& error) {
    message(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    message(error.path1().string() + ": " + error.code().message());
  } catch (const std::bad_alloc&) {
    tell_out_of_memory();
  } catch (const std::system_error& error) {
    message(error.what());  // the system refuses something, a thread for one
  } catch (const std::exception& error) {
    message(std::string("internal error: ") + error.what());
  }
  return kBadInput;
}

}  // namespace metaprof
