#include "meta/program/program.h"

namespace metaprof {

ValueId Program::loss() const {
  for (const ProgramOutput& output : outputs)
    if (output.kind == ProgramOutput::Kind::loss) return output.operand.value;
  for (const ProgramOutput& output : outputs) {
    if (output.kind != ProgramOutput::Kind::user || output.operand.value == kNoValue) continue;
    const auto& tensor = graph.values[static_cast<size_t>(output.operand.value)].tensor;
    if (tensor && tensor->sizes.empty() && is_floating(tensor->dtype)) return output.operand.value;
  }
  return kNoValue;
}

}  // namespace metaprof
