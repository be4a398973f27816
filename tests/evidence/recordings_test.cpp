// Cases recorded from PyTorch 2.11 on the emulated device: a small selection that is part of the checkout,
// and all of them where the folder of recordings is there.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "evidence/replay_report.h"

namespace metaprof {
namespace {

using What = CaseDifference::What;

std::filesystem::path shared_folder() {
  const char* given = std::getenv("METAPROF_SHARED");
  return given ? given : "../shared";
}

double share(const ReplayCounts& counts, What what) {
  return double(counts.equal[size_t(what)]) / double(counts.claimed);
}

void expect_all_equal(const std::string& log) {
  std::ostringstream out;
  const ReplayCounts counts = replay_logs({.logs = {log}, .verbose = true}, out);
  EXPECT_GT(counts.total, 0);
  EXPECT_EQ(counts.claimed, counts.total) << out.str();
  for (int what = 0; what < kWhats; ++what)
    EXPECT_EQ(counts.equal[size_t(what)], counts.claimed) << out.str();
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
  ReplayCounts replay_files(std::initializer_list<const char*> names) {
    ReplayOptions options;
    for (const char* name : names) options.logs.push_back((folder_ / name).string());
    std::ostringstream out;
    const ReplayCounts counts = replay_logs(options, out);
    text_ = out.str();
    std::cout << text_;
    return counts;
  }
  std::filesystem::path folder_;
  std::string text_;  ///< the last report
};

TEST_F(AllRecordings, Cuda) {
  const ReplayCounts counts = replay_files({"shapes.h200.log.gz", "opinfo.h200.log.gz"});
  EXPECT_GE(double(counts.claimed) / double(counts.total), 0.96);
  EXPECT_GE(share(counts, What::outputs), 0.998);
  EXPECT_GE(share(counts, What::saved), 0.998);
  EXPECT_GE(share(counts, What::forward_events), 0.99);
  EXPECT_GE(share(counts, What::backward_events), 0.99);
  EXPECT_GE(share(counts, What::grads), 0.998);
  EXPECT_EQ(text_.find("without a known reason"), std::string::npos);
}

TEST_F(AllRecordings, OtherDevices) {
  const ReplayCounts counts = replay_files({"shapes.a100.log.gz", "shapes.rtx4090.log.gz"});
  EXPECT_GE(double(counts.claimed) / double(counts.total), 0.95);
  for (const What what :
       {What::outputs, What::saved, What::forward_events, What::backward_events, What::grads})
    EXPECT_GE(share(counts, what), 0.99);
}

TEST_F(AllRecordings, Cpu) {
  const ReplayCounts counts = replay_files({"shapes.cpu.log.gz", "opinfo.cpu.log.gz"});
  EXPECT_GE(share(counts, What::outputs), 0.98);
  EXPECT_GE(share(counts, What::saved), 0.98);
}

}  // namespace
}  // namespace metaprof
