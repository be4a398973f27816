// metaprof models: the models that are known by name.

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/metaprof.h"
#include "estimate/model.h"

namespace metaprof {
namespace {

constexpr const char* kModelsDescription =
    "The models that are built in: each stands for MODEL in the other commands.\n"
    "\n"
    "  metaprof models\n"
    "  metaprof profile resnet50 --batch 64 --device rtx4090\n"
    "  metaprof profile llama-3.1-8b --precision bf16 --sequence 4096\n"
    "\n"
    "Those of transformers are configurations of Hugging Face (docs/how_to/configs.md), those of torchvision "
    "are "
    "written in\n"
    "C++ (docs/how_to/nn.md).\n"
    "\n"
    "Exit status: 0 fine, 2 bad usage.\n";

}  // namespace

void add_models_command(CommandLine& line) {
  line.add("models", kModelsDescription).on_run([] {
    for (const BuiltinName& model : builtin_models())
      std::cout << fmt::format("{:<26} {}\n", model.name, model.from);
    return int{kFine};
  });
}

}  // namespace metaprof
