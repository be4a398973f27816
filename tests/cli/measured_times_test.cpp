// Bounds and expectations of time beside public measurements of training steps (tools/compare_times.py).

#include <cmath>
#include <sstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

TEST(MeasuredTimes, NoBoundIsAboveAMeasuredIterationAndExpectationsAreNear) {
  const std::string file = testing::TempDir() + "metaprof_times_" + std::to_string(getpid()) + ".md";
  const std::string command = METAPROF_PYTHON " tools/compare_times.py " METAPROF_BINARY " > " + file;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string table = read_file(file);
  std::remove(file.c_str());
  EXPECT_NE(table.find("bounds above what was measured: 0 of 22\n"), std::string::npos) << table;
  double mean = 100;
  const size_t begin = table.find("mean error ");
  ASSERT_NE(begin, std::string::npos) << table;
  std::istringstream(table.substr(begin + 11)) >> mean;
  EXPECT_LE(mean, 15) << table;
  EXPECT_NE(table.find("of 12 iterations"), std::string::npos) << table;
}

}  // namespace
}  // namespace metaprof
