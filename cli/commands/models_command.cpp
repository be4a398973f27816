// metaprof models: the models that are known by name.

#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "estimate/prepare/model.h"

namespace metaprof {
namespace {

constexpr const char* kModelsDescription =
    "The built-in models. Use a name as MODEL in the other commands.\n"
    "\n"
    "  metaprof models\n"
    "  metaprof profile resnet50 --batch 64 --device rtx4090\n"
    "  metaprof profile llama-3.1-8b --precision bf16 --sequence 4096\n"
    "\n"
    "A name may have an owner and capitals, as on the Hub: meta-llama/Llama-3.1-8B.\n"
    "transformers' models are Hugging Face configurations (docs/how_to/configs.md).\n"
    "torchvision's models are written in C++ (docs/how_to/nn.md).\n"
    "\n"
    "Exit status: 0 success, 2 bad usage.\n";

}  // namespace

void add_models_command(CommandLine& line) {
  line.add("models", kModelsDescription).on_run([] {
    for (const BuiltinName& model : builtin_models())
      print_text(fmt::format("{:<26} {}\n", model.name, model.from));
    return int{kFine};
  });
}

}  // namespace metaprof
