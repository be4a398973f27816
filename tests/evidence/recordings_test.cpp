// Cases recorded from PyTorch 2.11 on the emulated device: a small selection that is part of the checkout,
// and all of them where the folder of recordings is there.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "evidence/cases/repeat_case.h"
#include "reports/cases_report.h"

namespace metaprof {
namespace {

using What = CaseDifference::What;

std::filesystem::path shared_folder() {
  const char* given = std::getenv("METAPROF_SHARED");
  return given ? given : "../shared";
}

double share(const CaseCounts& counts, What what) {
  return double(counts.equal[size_t(what)]) / double(counts.claimed);
}

void expect_all_equal(const std::string& log) {
  const CaseSummary summary = repeat_cases({.logs = {log}});
  const CaseCounts& counts = summary.totals;
  EXPECT_GT(counts.total, 0);
  EXPECT_EQ(counts.claimed, counts.total) << cases_text(summary);
  EXPECT_TRUE(counts.all_equal()) << cases_differences_text(summary);
}

// The smallest case of each operator, from all recordings of operators.
TEST(Recordings, SmallSelection) { expect_all_equal("tests/data/recordings/ops_small.log.gz"); }

// Operators whose arguments and incoming gradients have gaps or another order of dimensions, or are expanded;
// index tensors of the host and of 32 bits. Recorded like the others; two cases of each.
TEST(Recordings, ArgumentsWithGaps) { expect_all_equal("tests/data/recordings/ops_strided.log.gz"); }

class AllRecordings : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = shared_folder() / "recordings/ops";
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << folder_ << " is not there";
  }
  CaseCounts repeat_files(std::initializer_list<const char*> names) {
    CaseSelection selection;
    for (const char* name : names) selection.logs.push_back((folder_ / name).string());
    const CaseSummary summary = repeat_cases(selection);
    text_ = cases_text(summary);
    std::cout << text_;
    return summary.totals;
  }
  std::filesystem::path folder_;
  std::string text_;  ///< the last report
};

TEST_F(AllRecordings, Cuda) {
  const CaseCounts counts = repeat_files({"shapes.h200.log.gz", "opinfo.h200.log.gz"});
  EXPECT_GE(double(counts.claimed) / double(counts.total), 0.96);
  EXPECT_GE(share(counts, What::outputs), 0.998);
  EXPECT_GE(share(counts, What::saved), 0.998);
  EXPECT_GE(share(counts, What::forward_events), 0.99);
  EXPECT_GE(share(counts, What::backward_events), 0.99);
  EXPECT_GE(share(counts, What::grads), 0.998);
  EXPECT_EQ(text_.find("without a known reason"), std::string::npos);
}

TEST_F(AllRecordings, OtherDevices) {
  const CaseCounts counts = repeat_files({"shapes.a100.log.gz", "shapes.rtx4090.log.gz"});
  EXPECT_GE(double(counts.claimed) / double(counts.total), 0.95);
  for (const What what :
       {What::outputs, What::saved, What::forward_events, What::backward_events, What::grads})
    EXPECT_GE(share(counts, what), 0.99);
}

TEST_F(AllRecordings, Cpu) {
  const CaseCounts counts = repeat_files({"shapes.cpu.log.gz", "opinfo.cpu.log.gz"});
  EXPECT_GE(share(counts, What::outputs), 0.98);
  EXPECT_GE(share(counts, What::saved), 0.98);
}

}  // namespace
}  // namespace metaprof
