#include "validation/steps/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "validation/steps/statistics.h"

namespace metaprof {
namespace {

std::string show(const Sizes& sizes) { return fmt::format("[{}]", fmt::join(sizes, ",")); }

// Rows of one phase; either side may lack it.
class Comparison {
 public:
  explicit Comparison(CheckResult& result) : result_(result) {}

  void add_phase(const RecordedPhase* measured, const PhaseRow* estimated) {
    const StepPart part = measured ? *measured->part : estimated->part;
    bool exact = true, exact_reserved = true;
    for (const ComparedStatistic& statistic : kStatistics) {
      if (measured && !measured->number(fmt::format("{}.all.current", statistic.name))) continue;
      const bool equal = add_statistic(part, statistic, measured, estimated);
      const std::string_view name = statistic.name;
      if (name == "allocated_bytes" || name == "requested_bytes") exact &= equal;
      if (name == "reserved_bytes") exact_reserved = equal;
    }
    ++result_.phases;
    result_.exact_phases += exact;
    result_.exact_reserved_phases += exact_reserved;
  }

 private:
  bool add_statistic(const StepPart& part, const ComparedStatistic& statistic, const RecordedPhase* measured,
                     const PhaseRow* estimated) {
    bool equal = true;
    const auto add = [&](const char* which, int64_t AllocatorNumber::*value) {
      CheckRow row{.part = part,
                   .field = fmt::format("{}.{}", statistic.name, which),
                   .recorded = std::nullopt,
                   .estimated = std::nullopt};
      if (measured) row.recorded = measured->number(fmt::format("{}.all.{}", statistic.name, which));
      if (estimated) row.estimated = (estimated->numbers.*statistic.number).*value;
      equal &= row.equal();
      result_.rows.push_back(std::move(row));
    };
    add("current", &AllocatorNumber::current);
    add("peak", &AllocatorNumber::peak);
    return equal;
  }

  CheckResult& result_;
};

// The largest peak of a statistic on each side.
CheckRow overall(const std::vector<CheckRow>& rows, const std::string& field) {
  CheckRow peak{.part = {}, .field = field, .recorded = std::nullopt, .estimated = std::nullopt};
  for (const CheckRow& row : rows) {
    if (row.field != field) continue;
    peak.recorded = std::max(peak.recorded, row.recorded);
    peak.estimated = std::max(peak.estimated, row.estimated);
  }
  return peak;
}

}  // namespace

void expect_same_model(const Measurement& measurement, const Program& program) {
  int64_t parameters = 0;
  std::vector<const Sizes*> inputs;
  for (const ProgramInput& input : program.inputs) {
    parameters += input.kind == ProgramInput::Kind::parameter && input.tied_to < 0;
    if (input.kind != ProgramInput::Kind::user || input.value == kNoValue) continue;
    const auto& facts = program.graph.values[static_cast<size_t>(input.value)].tensor;
    if (facts) inputs.push_back(&facts->sizes);
  }
  if (measurement.parameter_tensors && parameters != *measurement.parameter_tensors)
    fail("{}: is of another model: it has {} parameters, {} has {}", measurement.head.path.string(),
         *measurement.parameter_tensors, program.origin, parameters);
  const size_t common = std::min(inputs.size(), measurement.inputs.size());
  for (size_t i = 0; i < common; ++i)
    if (*inputs[i] != measurement.inputs[i].sizes)
      fail("{}: is of another batch: input {} is {}, that of {} is {}", measurement.head.path.string(), i,
           show(measurement.inputs[i].sizes), program.origin, show(*inputs[i]));
}

CheckResult compare(const Measurement& measurement, const Phases& phases) {
  CheckResult result;
  result.id = measurement.id;
  result.recording = measurement.head.path.string();
  result.on = measurement.on;
  if (const auto log = measurement.log()) result.log = log->string();
  Comparison comparison(result);
  auto estimated = phases.rows.begin();
  const auto begins_at = [&](const StepPart& part) {
    return std::find_if(estimated, phases.rows.end(), [&](const PhaseRow& row) { return row.part == part; });
  };
  for (const RecordedPhase& measured : measurement.head.phases) {
    const auto found = begins_at(*measured.part);
    if (found == phases.rows.end()) {
      comparison.add_phase(&measured, nullptr);
      continue;
    }
    for (; estimated != found; ++estimated) comparison.add_phase(nullptr, &*estimated);
    comparison.add_phase(&measured, &*estimated++);
  }
  for (; estimated != phases.rows.end(); ++estimated) comparison.add_phase(nullptr, &*estimated);
  result.peak_allocated = overall(result.rows, "allocated_bytes.peak");
  result.peak_requested = overall(result.rows, "requested_bytes.peak");
  result.peak_reserved = overall(result.rows, "reserved_bytes.peak");
  return result;
}

}  // namespace metaprof
