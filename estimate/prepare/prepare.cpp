#include "estimate/prepare/prepare.h"

#include <utility>

#include "estimate/prepare/captured_run.h"

namespace metaprof {

PreparedRun prepare(const Model& model, const RunOptions& given) {
  PreparedRun run{
      .model = model, .given = given, .options = as_captured(given, model.program), .changed = {}};
  run.platform = platform_of(run.options, model.program);
  run.memory = memory_limit(run.options, run.platform);
  if (!model.is_trace()) run.changed = changed_inputs(model, run.options);
  return run;
}

std::vector<InputRow> inputs_of(const Program& program) {
  std::vector<InputRow> rows;
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::user || input.value == kNoValue) continue;
    const auto& tensor = program.graph.values[static_cast<size_t>(input.value)].tensor;
    if (tensor) rows.push_back({input.name, tensor->dtype, tensor->sizes});
  }
  return rows;
}

std::vector<std::pair<std::string, OptionValue>> option_values(const RunOptions& options) {
  std::vector<std::pair<std::string, OptionValue>> values;
  for (const RunOption& option : run_options())
    if (option.name != "device") values.emplace_back(option.name, option.value(options));
  return values;
}

}  // namespace metaprof
