// run_calls SEED COUNT [FOLDER]: so many programs of random calls, each profiled eagerly, compiled as a graph and captured as
// CUDA graphs. What is found lies in FOLDER, and the exit status is 1.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "program/text/text.h"
#include "tests/fuzz/findings.h"
#include "tests/fuzz/random_calls.h"
#include "tests/fuzz/shrink_program.h"

namespace metaprof {
namespace {

constexpr uint64_t kWays = 3;

HostileCase case_of(uint64_t seed, uint64_t number) {
  Random random(seed + 1, number);
  HostileCase hostile;
  hostile.bytes = to_text(random_calls(seed, number / kWays));
  hostile.options = random_options(random);
  hostile.every_report = random.once_in(5);
  switch (number % kWays) {
    case 0: hostile.way = Way::profile; break;
    case 1: hostile.way = random.once_in(2) ? Way::profile_graph : Way::graph; break;
    default: hostile.way = Way::cudagraphs;
  }
  if (hostile.way != Way::profile) {
    // They take neither.
    hostile.options.step.precision = Precision::fp32;
    hostile.options.step.checkpoint.clear();
  }
  return hostile;
}

}  // namespace
}  // namespace metaprof

int main(int count, char** words) {
  using namespace metaprof;
  if (count < 3) {
    fmt::print(stderr, "run_calls SEED COUNT [FOLDER]\n");
    return 2;
  }
  const uint64_t seed = std::strtoull(words[1], nullptr, 10), calls = std::strtoull(words[2], nullptr, 10);
  const std::string folder = count > 3 ? words[3] : fmt::format("build/findings/calls-{}", seed);
  try {
    return run_cases(
        0, kWays * calls, folder, [&](uint64_t number) { return case_of(seed, number); }, shrink_program);
  } catch (const Error& error) {
    fmt::print(stderr, "run_calls: {}\n", error.what());
    return 2;
  }
}
