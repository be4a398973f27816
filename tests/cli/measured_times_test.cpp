// Bounds and expectations of time beside public measurements of training steps (tools/compare/compare_times.py).

#include "tests/cli/program.h"

namespace metaprof {
namespace {

TEST(MeasuredTimes, NoBoundIsAboveAMeasuredIterationAndExpectationsAreAsNearAsReached) {
  const std::string file = testing::TempDir() + "metaprof_times_" + std::to_string(getpid()) + ".md";
  const std::string command = METAPROF_PYTHON " tools/compare/compare_times.py " METAPROF_BINARY " > " + file;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string table = read_file(file);
  std::remove(file.c_str());
  EXPECT_NE(table.find("bounds above what was measured: 0 of 22\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nmean error 14.9 %, largest 26 %, of 12 iterations;"), std::string::npos) << table;
}

}  // namespace
}  // namespace metaprof
