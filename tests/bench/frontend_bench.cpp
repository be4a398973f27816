// Milliseconds to read a .pt2 archive: two models of the tests, and some large ones where there are any
// beside the project.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "core/formats/archive.h"
#include "core/formats/json.h"
#include "program/pt2/pt2.h"
#include "reports/checks/check_report.h"

namespace metaprof {
namespace {

void read_program(benchmark::State& state, const std::string& path) {
  for (auto _ : state) benchmark::DoNotOptimize(read_pt2(path));
}

std::string text_of(const std::string& path) {
  const Archive archive(path);
  for (const Archive::Entry& entry : archive.entries())
    if (entry.name.ends_with("models/model.json")) return std::string(archive.read(entry).view());
  return "{}";
}

void inflate(benchmark::State& state, const std::string& path) {
  for (auto _ : state) benchmark::DoNotOptimize(text_of(path));
}

void check_json(benchmark::State& state, const std::string& path) {
  const std::string text = text_of(path);
  for (auto _ : state) benchmark::DoNotOptimize(JsonDocument(text, path).root());
  state.SetBytesProcessed(static_cast<int64_t>(text.size()) * state.iterations());
}

void add(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return;
  const std::string file = path.string(), name = path.stem().string();
  for (const auto& [what, function] : {std::pair{"read", &read_program}, std::pair{"inflate", &inflate},
                                       std::pair{"check_json", &check_json}})
    benchmark::RegisterBenchmark((name + "/" + what).c_str(), function, file)->Unit(benchmark::kMillisecond);
}

const bool added = [] {
  add("tests/data/models/resnet18.pt2");
  add("tests/data/models/gpt2.pt2");
  const char* shared = std::getenv("METAPROF_SHARED");
  const std::filesystem::path folder = std::filesystem::path(shared ? shared : "../shared") / "models";
  for (const char* name : {"resnet152.pt2", "llama_3_1_8b.pt2", "qwen3_0_6b.pt2"}) add(folder / name);
  return true;
}();

}  // namespace
}  // namespace metaprof
