#include "tests/fuzz/hostile_case.h"

#include <fmt/ranges.h>

#include <span>

#include "core/error.h"
#include "core/formats/file_in_memory.h"
#include "core/utf8.h"
#include "estimate/compiled/cudagraphs.h"
#include "estimate/compiled/graph_execution.h"
#include "program/pt2/pt2.h"
#include "program/text/text.h"
#include "reports/compiled/cudagraphs_report.h"
#include "reports/compiled/graph_execution_report.h"
#include "reports/profile/profile_report.h"
#include "reports/report_forms.h"

namespace metaprof {
namespace {

std::span<const unsigned char> as_bytes(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

// C0 and DEL, C1 (C2 80 to C2 9F), and marks of direction: U+202A to U+202E, U+2066 to U+2069.
bool moves_a_terminal(std::string_view character) {
  const auto bytes = as_bytes(character);
  if (bytes.size() == 1) return bytes[0] < 0x20 || bytes[0] == 0x7F;
  if (bytes.size() == 2) return bytes[0] == 0xC2 && bytes[1] < 0xA0;
  if (bytes.size() != 3 || bytes[0] != 0xE2) return false;
  return (bytes[1] == 0x80 && bytes[2] >= 0xAA && bytes[2] <= 0xAE) ||
         (bytes[1] == 0x81 && bytes[2] >= 0xA6 && bytes[2] <= 0xA9);
}

// The snapshot is of a caching allocator. Pictures of the graph of nodes are Graphviz' work.
void report(Estimate& result, bool every_report) {
  const TextOptions text;
  (void)profile_text(result.report, text);
  if (!every_report) return;
  ReportInputs inputs(result, text);
  inputs.with_nodes();
  for (const ReportForm& form : report_forms())
    if (form.name != "svg" && (form.name != "snapshot" || !result.platform.device().is_cpu()))
      (void)form.make(inputs);
}

// As the commands do it, without what they print: reports of the results are made and forgotten.
void run(const HostileCase& hostile) {
  const Model model = model_of(read_case(hostile));
  RunOptions options = hostile.options;
  (void)warnings_of(model, options);
  switch (hostile.way) {
    case Way::profile_graph: options.step.execution = Execution::graph; [[fallthrough]];
    case Way::profile: {
      const StepsToRun steps = hostile.every_report ? StepsToRun::all : StepsToRun::until_alike;
      Estimate result = estimate(model, options, steps);
      return report(result, hostile.every_report);
    }
    case Way::graph:
      return (void)graph_execution_text(graph_execution(model, {.run = options, .compile = {}}));
    case Way::cudagraphs: {
      CudagraphsOptions asked;
      asked.run = options;
      if (options.step.optimizer == "adamw") asked.run.step.optimizer = "sgd-momentum";
      (void)cudagraphs_text(cudagraphs(model, asked));
    }
  }
}

}  // namespace

Program read_case(const HostileCase& hostile) {
  if (hostile.ending == ".mp") return parse_program(hostile.bytes, "case.mp");
  const FileInMemory file(hostile.bytes);
  return read_pt2(file.path());
}

std::string complaint_of(std::string_view message) {
  constexpr size_t kMostCharacters = 500;
  size_t characters = 0;
  for (std::string_view rest = message; !rest.empty(); ++characters) {
    const size_t length = utf8_length(rest);
    if (length == 0) return "bytes in the message that are no character";
    const std::string_view character = rest.substr(0, length);
    if (moves_a_terminal(character))
      return fmt::format("a control character in the message: {:02x}", fmt::join(as_bytes(character), " "));
    rest.remove_prefix(length);
  }
  if (characters > kMostCharacters) return fmt::format("a message of {} characters", characters);
  return "";
}

Outcome run_case(const HostileCase& hostile) {
  try {
    run(hostile);
    return {};
  } catch (const Error& error) {
    return {true, complaint_of(error.what())};
  } catch (const std::bad_alloc&) {
    return {true, "out of memory"};
  } catch (const std::exception& error) {
    return {true, fmt::format("an internal error: {}", error.what())};
  }
}

RunOptions random_options(Random& random) {
  RunOptions options;
  options.workspaces = "none";  // no helper process is asked
  options.step.optimizer = random.one_of({"none", "none", "sgd", "adamw"});
  if (random.once_in(10)) options.device = "cpu";
  if (random.once_in(10))
    options.step.precision = random.one_of({Precision::bf16, Precision::amp_bf16, Precision::amp_fp16});
  if (random.once_in(20)) options.step.mode = random.one_of({Mode::eval, Mode::no_grad, Mode::inference});
  if (random.once_in(25)) options.step.checkpoint = "*";
  if (random.once_in(25)) options.step.channels_last = true;
  if (random.once_in(25)) options.batch = 3;
  return options;
}

std::string HostileCase::command(std::string_view file) const {
  static constexpr std::string_view kCommands[] = {"profile", "profile", "graph", "cudagraphs"};
  std::string text = fmt::format("{} {}", kCommands[static_cast<size_t>(way)], file);
  if (way == Way::profile_graph) text += " --execution graph";
  const RunOptions usual;
  for (const RunOption& option : run_options()) {
    if (option.name == "execution" || option.value(options) == option.value(usual)) continue;
    text += option.argument.empty() ? " " + option.flag()
                                    : fmt::format(" {} '{}'", option.flag(), to_text(option.value(options)));
  }
  return text;
}

}  // namespace metaprof
