// No memory on this machine is one line and exit code 2.

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

// Whatever the limit is, and wherever it is reached: before main, while options are read, in threads.
TEST(HostMemory, ALimitFromOutsideIsNeverACrash) {
  bool reached = false;
  for (int kib = 40000; kib <= 100000; kib += 3000)
    for (const char* words : {"profile gpt2", "sweep gpt2 --batch 1,2", "fit gpt2", "run -- true"}) {
      const Outcome outcome = run_program(words, "ulimit -v " + std::to_string(kib) + "; ");
      EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 2) << words << kib << outcome.exit_code;
      const bool told = outcome.err.starts_with("metaprof: out of memory: `ulimit -v` allows this program ");
      reached |= told;
      // Nothing is recorded of `true`, which has exit status 2, too.
      EXPECT_EQ(told, outcome.exit_code == 2 && outcome.err.find("was not loaded") == std::string::npos)
          << words << kib << outcome.err;
      EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  EXPECT_TRUE(reached);
}

// A chain of so many calls takes more than 64 MiB.
TEST(HostMemory, TheBudgetEndsALargeModel) {
  const std::string file = testing::TempDir() + "metaprof_chain_" + std::to_string(getpid()) + ".mp";
  {
    std::ofstream out(file);
    out << "metaprof program 1\nparameter w = %w: f32[4] grad\ninput x = %x: f32[4]\n%v0: f32[4] = "
           "aten::mul(%x, "
           "%w)\n";
    for (int i = 1; i < 50000; ++i) out << "%v" << i << ": f32[4] = aten::relu(%v" << i - 1 << ")\n";
    out << "%loss: f32[] = aten::mean(%v49999)\nloss = %loss\n";
  }
  const std::string told =
      "metaprof: out of memory: this program may take 64 MiB of this machine's; --host-memory SIZE allows "
      "more\n";
  EXPECT_EQ(run_program("profile " + file + " --host-memory 64MiB").err, told);
  const Outcome outcome = run_program("profile " + file, "METAPROF_HOST_MEMORY=64MiB ");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, told);
  EXPECT_EQ(run_program("profile " + file + " --host-memory 4GiB").exit_code, 0);
  std::remove(file.c_str());
  expect_refusal_with("profile gpt2 --host-memory much", {"'much'"});
}

}  // namespace
}  // namespace metaprof
