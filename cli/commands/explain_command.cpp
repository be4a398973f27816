// metaprof explain: why memory ran out, by PyTorch's own message.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "core/formats/file.h"
#include "estimate/explain/explanation.h"
#include "reports/checks/explanation_report.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

constexpr const char* kExplainDescription =
    "Why memory ran out, by the message that PyTorch wrote.\n"
    "\n"
    "  metaprof explain train.log                     the last message in a log\n"
    "  metaprof explain - < message.txt               pasted\n"
    "\n"
    "The message begins with \"CUDA out of memory. Tried to allocate\". Messages of PyTorch 1.4 to 2.15 are\n"
    "understood. Amounts are as exact as the message, which rounds them.\n"
    "\n"
    "Exit status: 0 success, 2 bad usage or input (no such message).\n";

struct ExplainWords {
  std::string file, json;
};

int explain(const ExplainWords& words) {
  const std::optional<OutOfMemoryMessages> messages =
      read_out_of_memory_messages(read_file(words.file, kMostBytes, "a log"));
  if (!messages)
    fail(
        "{}: no message of an out-of-memory in it: expected \"Tried to allocate … GiB\", as PyTorch writes "
        "it",
        words.file == "-" ? "standard input" : words.file);
  const OutOfMemoryExplanation explanation = metaprof::explain(*messages);
  if (!words.json.empty()) write_result(words.json, explanation_json(explanation));
  if (words.json != "-") print_text(explanation_text(explanation));
  return kFine;
}

}  // namespace

void add_explain_command(CommandLine& line) {
  Command command = line.add("explain", kExplainDescription);
  auto words = std::make_shared<ExplainWords>();
  command.option("LOG", words->file, "a text with PyTorch's message; -: standard input")
      .value(" ")
      .required();
  add_json(command, words->json);
  command.on_run([words] { return explain(*words); });
}

}  // namespace metaprof
