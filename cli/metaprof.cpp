#include "cli/metaprof.h"

#include <exception>
#include <iostream>
#include <memory>
#include <new>

#include "cli/completion.h"
#include "cli/console.h"
#include "cli/defaults_file.h"
#include "core/error.h"

namespace metaprof {
namespace {

constexpr const char* kProgramDescription =
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
    "  metaprof cudagraphs model.pt2                  what capture as CUDA graphs would cost\n"
    "  metaprof graph model.pt2                       what compilation as a graph would change\n"
    "  metaprof advise model.pt2 --device rtx4090     what helps it to fit\n"
    "  metaprof plan model.pt2 --budget 24GiB         what to compute again so that it fits\n"
    "  metaprof devices                               the devices that are known\n"
    "  metaprof ops softmax                           what is known of the operators with this word\n"
    "  metaprof check model.pt2 --against measured.json\n"
    "  metaprof allocator --replay gpt2.log.gz        the caching allocator against a recording\n"
    "  metaprof completion bash                       completion for a shell; metaprof man: the manual page\n"
    "  metaprof COMMAND --help                        examples and options of a command\n";

// Texts about the program itself.
void add_text_commands(CommandLine& line) {
  Command completion = line.add("completion",
                                "Completion for a shell: bash, zsh or fish.\n\n"
                                "  source <(metaprof completion bash)\n"
                                "  metaprof completion fish > ~/.config/fish/completions/metaprof.fish\n");
  auto shell = std::make_shared<std::string>();
  completion.option("SHELL", *shell, "bash, zsh or fish").value(" ").required();
  completion.on_run([&line, shell] {
    std::cout << completion_text(line.commands(), *shell);
    return int{kFine};
  });
  line.add("man", "The manual page.\n\n  metaprof man | man -l -\n").on_run([&line] {
    std::cout << manual_page(line.commands(), "metaprof " METAPROF_VERSION);
    return int{kFine};
  });
}

}  // namespace

int run_metaprof(int count, char** words) {
  CommandLine line(kProgramDescription, "metaprof " METAPROF_VERSION);
  add_profile_command(line);
  add_ops_command(line);
  add_allocator_command(line);
  add_check_command(line);
  add_fit_command(line);
  add_diff_command(line);
  add_sweep_command(line);
  add_plan_input_command(line);
  add_run_command(line);
  add_cudagraphs_command(line);
  add_graph_command(line);
  add_advise_command(line);
  add_plan_command(line);
  add_devices_command(line);
  add_frameworks_command(line);
  add_text_commands(line);
  try {
    if (const std::string file = defaults_file(); !file.empty() && count > 1)
      line.take_defaults(file, words[1]);
    const int status = line.run(count, words);
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
