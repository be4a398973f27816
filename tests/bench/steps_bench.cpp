// What an estimate takes: a .pt2 read, two steps of AdamW run, the allocator's statistics of every phase.
//
// Models: those named in METAPROF_BENCH_MODELS (a folder), else of ../shared/models or tests/data/models.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "meta/allocator/caching_allocator.h"
#include "meta/platform/platform.h"
#include "profiler/allocator/phases.h"
#include "program/pt2/pt2.h"
#include "step/step.h"

namespace metaprof {
namespace {

std::filesystem::path folder() {
  if (const char* named = std::getenv("METAPROF_BENCH_MODELS")) return named;
  const std::filesystem::path shared = "../shared/models";
  return std::filesystem::is_directory(shared) ? shared : "tests/data/models";
}

void estimate(benchmark::State& state, const std::string& path, int steps) {
  const Platform device = platform_named("h200");
  StepOptions options;
  options.steps = steps;
  int64_t peak = 0;
  size_t events = 0;
  for (auto _ : state) {
    const Program program = read_pt2(path);
    const Trace trace = run_steps(program, device, options);
    CachingAllocator allocator({.conf = {}, .device = {.capacity = uint64_t(device.hardware.memory.count)}});
    peak = replay(trace, device.device(), allocator).peak.allocated_bytes.peak;
    events = trace.events.size();
  }
  benchmark::DoNotOptimize(peak);
  state.counters["events"] = static_cast<double>(events);
}

void add(const std::string& model, int steps) {
  const std::string path = (folder() / (model + ".pt2")).string();
  if (!std::filesystem::exists(path)) return;
  benchmark::RegisterBenchmark((model + "/steps:" + std::to_string(steps)).c_str(),
                               [path, steps](benchmark::State& state) { estimate(state, path, steps); })
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace metaprof

int main(int count, char** words) {
  for (const char* model : {"resnet18", "resnet50", "gpt2", "llama_3_2_1b"}) metaprof::add(model, 2);
  metaprof::add("llama_3_1_8b", 3);
  benchmark::Initialize(&count, words);
  benchmark::RunSpecifiedBenchmarks();
}
