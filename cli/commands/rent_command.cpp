// metaprof rent: which cards a model needs.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "estimate/search/rent.h"
#include "reports/search/rent_report.h"

namespace metaprof {
namespace {

constexpr const char* kRentDescription =
    "Which cards a model needs: to fine-tune it, with LoRA and QLoRA, and to generate.\n"
    "\n"
    "  metaprof rent meta-llama/Llama-3.1-8B\n"
    "  metaprof rent Qwen/Qwen3-8B --context 32k --device rtx4090,l40s,h100\n"
    "  metaprof rent path/to/config.json --sequence 4096 --json rent.json\n"
    "\n"
    "MODEL is a model that is built in (metaprof models), by its name on the Hub, or a Hugging Face "
    "config.json or its\n"
    "folder. Each figure is what `metaprof profile` and `metaprof fit` give; --json has their options.\n"
    "\n"
    "Exit status: 0 something fits some card, 1 nothing fits any, 2 bad usage or input.\n";

struct RentWords {
  std::string model, json;
  RentOptions options;
  int64_t width = 0;
};

int rent(const RentWords& words) {
  const Model model = read_model(words.model);
  const RentReport report = [&] {
    ProgressLine line("rent:");
    return metaprof::rent(model, words.options, [&](size_t done, size_t all) { line.tell(done, all); });
  }();
  if (!words.json.empty()) write_result(words.json, rent_json(report));
  if (words.json != "-") print_text(rent_text(report, static_cast<size_t>(words.width)));
  return report.any_fits() ? kFine : kFinding;
}

}  // namespace

void add_rent_command(CommandLine& line) {
  Command command = line.add("rent", kRentDescription);
  auto words = std::make_shared<RentWords>();
  RentOptions& options = words->options;
  add_model(command, words->model, "a model's name, or a config.json or its folder");
  // An option of `metaprof profile`, checked as there.
  const auto add = [&](std::string_view name, std::string& value, const std::string& help) {
    const RunOption& option = run_option(name);
    const auto take = [&value, &option](const std::string& text) {
      RunOptions run;
      set_from_text(run, option, text);
      value = text;
    };
    command.option(option.flag(), take, help).value(std::string(option.argument)).with_default(value);
  };
  command
      .option(
          "--context", [&options](const std::string& text) { options.context = parse_tokens(text); },
          "tokens to generate from and to: 8192, 32k")
      .value("TOKENS")
      .with_default("8192");
  command
      .option(
          "--sequence",
          [&options](const std::string& text) {
            RunOptions run;
            set_from_text(run, run_option("sequence"), text);
            options.sequence = run.sequence;
          },
          "tokens of a training sample")
      .value("N")
      .with_default("2048, or what the model has");
  command.option("--device", options.devices, "cards with commas between; all")
      .value("NAME,…")
      .with_default();
  add("precision", options.precision, "as in metaprof profile [that in which the weights are published]");
  add("optimizer", options.optimizer, "as in metaprof profile");
  add("lora", options.lora, "adapters: r=16,targets=q_proj,v_proj; without targets peft's of the family");
  add("base_weights", options.base_weights, "how QLoRA stores weights: nf4, nf4-double, fp4, int8 …");
  add("loss", options.loss, "of training: transformers (what the class computes of labels), or plain");
  add("framework", options.framework, "version of PyTorch [the newest that is known]");
  add("margin", options.margin, "share of each card's memory to leave free, as 5%");
  add_json(command, words->json);
  add_width(command, words->width);
  command.on_run([words] { return rent(*words); });
}

}  // namespace metaprof
