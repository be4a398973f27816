// Reports of `metaprof check` from results made by hand, against those on file in tests/data/reports. After a
// change that is meant: METAPROF_WRITE_GOLDEN=1, as in files_test.cpp.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "reports/checks/check_report.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string file = "tests/data/reports/" + name;
  if (std::getenv("METAPROF_WRITE_GOLDEN")) std::ofstream(file) << text;
  EXPECT_EQ(text, read_file(file)) << name;
}

CheckRow peak(const char* field, int64_t recorded, int64_t estimated) {
  return {.part = {}, .field = field, .recorded = recorded, .estimated = estimated};
}

// One measurement is exact; one has an allocated peak of 1000 bytes, of which the estimate lacks 100 (-10 %),
// and a name that XML cannot hold as it is. One baseline: the peak grew by 2 of 100, saved bytes from
// nothing.
CheckReport report() {
  CheckResult fine;
  fine.id = "fine";
  fine.recording = "fine.json";
  fine.phases = fine.exact_phases = fine.exact_reserved_phases = 2;
  fine.peak_allocated = peak("allocated_bytes.peak", 1000, 1000);
  fine.peak_requested = peak("requested_bytes.peak", 900, 900);
  fine.peak_reserved = peak("reserved_bytes.peak", 4096, 4096);
  CheckResult wrong = fine;
  wrong.id = "a <b> & \"c\"\x01";
  wrong.recording = "with space/50%.json";
  wrong.log = "with space/50%.log.gz";
  wrong.exact_phases = 1;
  wrong.peak_allocated = peak("allocated_bytes.peak", 1000, 900);
  wrong.first_difference =
      EventMismatch{.line = 12, .recorded = "+ 100 in aten::relu", .estimated = "the next phase"};
  using Figure = BaselineRow::Figure;
  BaselineResult grown;
  grown.file = "old.json";
  grown.model_before = "model";
  grown.model_after = "model2";
  grown.rows = {{Figure::allocated, 100, 102},
                {Figure::requested, 90, 90},
                {Figure::reserved, 4096, 2048},
                {Figure::saved, 0, 2},
                {Figure::flops, 7, 7}};
  grown.saved_module = BytesChange{"fc1", 0, 2};
  grown.saved_node = BytesChange{"ReluBackward0", 0, 2};
  grown.peak_category = BytesChange{"activation", 10, 12};
  grown.peak_op = "aten::relu";
  grown.peak_module = "fc1";
  grown.source_file = "net/model.py";
  grown.source_line = 12;
  return {.measurements = {fine, wrong}, .baselines = {grown}, .tolerance = 0.01};
}

TEST(CheckReport, Text) { expect_golden("check.txt", check_text(report())); }
TEST(CheckReport, Json) { expect_golden("check.json", check_json(report())); }
TEST(CheckReport, Junit) { expect_golden("check.junit.xml", check_junit(report())); }
TEST(CheckReport, Sarif) { expect_golden("check.sarif", check_sarif(report(), "1.2.3")); }

TEST(CheckReport, FilesAreWhatOtherProgramsRead) {
  const std::string base = testing::TempDir() + "metaprof_check_report" + std::to_string(getpid());
  std::ofstream(base + ".xml") << check_junit(report());
  std::ofstream(base + ".sarif") << check_sarif(report(), "1.2.3");
  const std::string command =
      METAPROF_PYTHON " tests/validate_check_files.py " + base + ".xml " + base + ".sarif > " + base + ".txt";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string found = read_file(base + ".txt");
  EXPECT_NE(
      found.find("case a <b> & \"c\"\\x01 a <b> & \"c\"\\x01: peak of allocated bytes: 1000 recorded, 900 "
                 "estimated: -10.000 %"),
      std::string::npos)
      << found;
  EXPECT_NE(found.find("result peak-allocated-error with%20space/50%25.log.gz:12 a <b>"), std::string::npos)
      << found;
  EXPECT_NE(found.find("result saved-growth net/model.py:12 old.json: bytes saved for backward 0 B → 2 B"),
            std::string::npos)
      << found;
}

// 1 % of 100 is 1: two more are too many, one is not; fewer never are.
TEST(CheckReport, GrowthIsJudgedAgainstTheTolerance) {
  using Figure = BaselineRow::Figure;
  EXPECT_TRUE((BaselineRow{Figure::saved, 100, 102}.grew_above(0.01)));
  EXPECT_FALSE((BaselineRow{Figure::saved, 100, 101}.grew_above(0.01)));
  EXPECT_FALSE((BaselineRow{Figure::saved, 100, 50}.grew_above(0.01)));
  EXPECT_TRUE((BaselineRow{Figure::saved, 0, 1}.grew_above(0.5)));
  BaselineResult result;
  EXPECT_TRUE(result.within(0));
  result.out_of_memory_since = true;
  EXPECT_FALSE(result.within(1));
}

}  // namespace
}  // namespace metaprof
