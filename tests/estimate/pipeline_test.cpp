// The stages of an estimate: prepare settles what the user named, run makes a trace, read makes results of it.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/least_memory.h"
#include "estimate/prepare/prepare.h"
#include "estimate/read.h"

namespace metaprof {
namespace {

RunOptions with(std::string_view name, std::string_view text) {
  RunOptions options;
  options.workspaces = "none";
  set_from_text(options, run_option(name), text);
  return options;
}

// Micro-batches of the first step whose forward the trace has.
int forwards_of_first_step(const Trace& trace) {
  return static_cast<int>(std::ranges::count_if(trace.events, [](const Event& event) {
    return event.kind == Event::Kind::phase && event.detail == static_cast<uint8_t>(Phase::forward) &&
           event.id == 0;
  }));
}

TEST(Pipeline, AnOptionGoesFromTheCommandLineToTheTrace) {
  const Model model = read_model("tests/data/models/resnet18.pt2");
  const RunOptions options = with("accumulate", "3");  // as `--accumulate 3` does
  const PreparedRun prepared = prepare(model, options);
  EXPECT_EQ(prepared.options.step.accumulate, 3);
  WorkspacePlanners planners;
  ModelRun ran = run(prepared, planners, nullptr, StepsToRun::all);
  EXPECT_EQ(forwards_of_first_step(ran.trace), 3);
  const Estimate result = read(prepared, std::move(ran));
  EXPECT_EQ(forwards_of_first_step(result.trace), 3);
  const auto shown =
      std::ranges::find(result.report.options, "accumulate", [](const auto& row) { return row.first; });
  ASSERT_NE(shown, result.report.options.end());
  EXPECT_EQ(to_text(shown->second), "3");
}

TEST(Pipeline, PrepareSettlesTheDeviceTheInputsAndTheMemory) {
  const Model model = read_model("tests/data/models/resnet18.pt2");
  RunOptions options = with("batch", "5");
  set_from_text(options, run_option("device"), "a100");
  set_from_text(options, run_option("memory"), "10GiB");
  set_from_text(options, run_option("context"), "1GiB");
  set_from_text(options, run_option("margin"), "50%");
  const PreparedRun prepared = prepare(model, options);
  EXPECT_EQ(prepared.platform.hardware.name, "a100");
  EXPECT_EQ(inputs_of(prepared.program())[0].sizes[0], 5);
  EXPECT_EQ(prepared.memory.available.count, int64_t{4} << 30);  // half of 10 GiB, less the context
}

// The step itself, run with the least memory and with one segment less.
TEST(Pipeline, TheLeastMemoryRunsAndLessDoesNot) {
  const Model model = read_model("tests/data/models/resnet18.pt2");
  RunOptions options = with("context", "2MiB");
  set_from_text(options, run_option("batch"), "8");
  const Estimate free = estimate(model, options);
  const std::optional<Bytes> least = least_memory(free);
  ASSERT_TRUE(least);
  EXPECT_LE(least->count, free.report.memory.phases.peak.reserved_bytes.peak);
  EXPECT_GE(least->count, free.report.memory.phases.peak.allocated_bytes.peak);
  set_from_text(options, run_option("memory"), std::to_string(least->count + (int64_t{2} << 20)) + "B");
  const Estimate tight = estimate(model, options);
  EXPECT_TRUE(verdict_of(tight.report).fits);
  EXPECT_EQ(least_memory(tight), least);
  set_from_text(options, run_option("memory"), std::to_string(least->count) + "B");
  const Estimate less = estimate(model, options);
  EXPECT_FALSE(verdict_of(less.report).fits);
  EXPECT_EQ(least_memory(less), least);
}

TEST(Pipeline, TheHostsMemoryHasNoLeast) {
  const Model model = read_model("tests/data/models/resnet18.pt2");
  EXPECT_FALSE(least_memory(estimate(model, with("device", "cpu"))));
}

TEST(Pipeline, PrepareRefusesAMarginThatLeavesNothing) {
  const Model model = read_model("tests/data/models/resnet18.pt2");
  const RunOptions options = with("margin", "100%");
  EXPECT_THROW(prepare(model, options), Error);
}

}  // namespace
}  // namespace metaprof
