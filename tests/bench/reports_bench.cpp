// How long the passes over a trace and the reports take: three steps of GPT-2 with AdamW.

#include <benchmark/benchmark.h>

#include "meta/allocator/exact_allocator.h"
#include "meta/platform/platform.h"
#include "profiler/allocator/allocator_history.h"
#include "profiler/nodes/plan_input.h"
#include "program/pt2/pt2.h"
#include "reports/exports/chrome_trace.h"
#include "reports/exports/memory_snapshot.h"
#include "reports/page/html_page.h"
#include "reports/pictures/graph_dot.h"
#include "reports/plans/plan_records.h"
#include "reports/profile/profile_report.h"
#include "step/step.h"

namespace metaprof {
namespace {

const Rates kRates{.bytes_per_second = 1e12, .flops_f64 = 1e13, .flops_f32 = 1e13, .flops_f16 = 1e14};

const Trace& gpt2() {
  static const Trace trace =
      run_steps(read_pt2("tests/data/models/gpt2.pt2"), platform_named("h200"), StepOptions());
  return trace;
}

const ProfileReport& report() {
  static const ProfileReport report = [] {
    ProfileReport made;
    ExactAllocator allocator;
    made.memory = profile_memory(gpt2(), kFirstGpu, allocator);
    made.counts = count(gpt2(), kRates);
    made.nodes = profile_nodes(gpt2(), kFirstGpu, Granularity::module, kRates);
    return made;
  }();
  return report;
}

// Argument: the granularity.
void per_node_pass(benchmark::State& state) {
  const auto granularity = static_cast<Granularity>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(profile_nodes(gpt2(), kFirstGpu, granularity, kRates));
}
BENCHMARK(per_node_pass)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

void json_report(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(profile_json(report()));
}
BENCHMARK(json_report)->Unit(benchmark::kMillisecond);

void html_report(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(html_page({.report = report(),
                                        .schedule = schedule(gpt2(), kFirstGpu, kRates),
                                        .stays = storage_stays(gpt2(), kFirstGpu),
                                        .lines = {}}));
}
BENCHMARK(html_report)->Unit(benchmark::kMillisecond);

void chrome_trace_report(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(chrome_trace(schedule(gpt2(), kFirstGpu, kRates), "gpt2"));
}
BENCHMARK(chrome_trace_report)->Unit(benchmark::kMillisecond);

void snapshot_report(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(memory_snapshot(allocator_history(gpt2(), kFirstGpu, {})));
}
BENCHMARK(snapshot_report)->Unit(benchmark::kMillisecond);

void drawing(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(graph_dot(report()));
}
BENCHMARK(drawing)->Unit(benchmark::kMillisecond);

void planner_records(benchmark::State& state) {
  PlanReport plan;
  for (auto _ : state) {
    plan.input = plan_input(gpt2(), kFirstGpu, kRates);
    for (const std::string& format : plan_formats()) benchmark::DoNotOptimize(plan_record(plan, format));
  }
}
BENCHMARK(planner_records)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace metaprof
