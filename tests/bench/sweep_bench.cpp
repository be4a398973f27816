// Combinations a second: 6 batches × 2 precisions × 4 devices × 3 optimizers, on all cores.

#include <benchmark/benchmark.h>

#include "estimate/prepare/model.h"
#include "estimate/search/sweep.h"

namespace metaprof {
namespace {

Grid grid() {
  Grid grid;
  grid.add(run_option("batch"), "1,2,3,4,6,8");
  grid.add(run_option("precision"), "fp32,amp-bf16");
  grid.add(run_option("device"), "h200,a100,rtx4090,t4");
  grid.add(run_option("optimizer"), "sgd,adam,adamw");
  return grid;
}

void combinations(benchmark::State& state, const char* name) {
  const Model model = read_model(name);
  size_t rows = 0;
  for (auto _ : state) rows += sweep(model, grid()).rows.size();
  state.counters["a second"] = benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(combinations, gpt2, "tests/data/models/gpt2.pt2")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(combinations, llama_8b, "tests/data/models/llama_3_1_8b.pt2")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace metaprof
