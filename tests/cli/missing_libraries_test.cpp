// Libraries that few commands need and a user's machine may lack. An empty file hides one: the loader finds it first.

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

class MissingLibraries : public ::testing::Test {
 protected:
  // The names of Debian 12.
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    for (const char* name : {"libCbcSolver.so.3", "libcgraph.so.6"}) std::ofstream(folder_ + "/" + name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Outcome run(const std::string& words) const {
    return run_program(words, "LD_LIBRARY_PATH=" + folder_ + " ");
  }

  std::string folder_ = testing::TempDir() + "metaprof_no_libraries_" + std::to_string(getpid());
};

const std::string kPlan = "plan tests/data/models/gpt2.pt2 --budget 90% --steps 2 --workspaces none";

TEST_F(MissingLibraries, APlanWithoutTheSolverTriesTheOtherStrategiesAndSaysSo) {
  const Outcome outcome = run(kPlan);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\nchain "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("\noperators "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("the strategy operators is left out: "), std::string::npos) << outcome.err;
}

TEST_F(MissingLibraries, AStrategyThatIsAskedForSaysWhatToInstall) {
  const Outcome outcome = run(kPlan + " --strategy operators");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("CBC"), std::string::npos) << outcome.err;
  EXPECT_EQ(run(kPlan + " --strategy modules").err.find("CBC"), std::string::npos);
}

TEST_F(MissingLibraries, APictureSaysWhatToInstall) {
  const Outcome outcome = run("profile tests/data/fixtures/base.pt2 --svg " + folder_ + "/graph.svg");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("Graphviz"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace metaprof
