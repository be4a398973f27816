// Cases recorded from PyTorch 2.11 (and 2.15) on the emulated device: a small selection that is part of the checkout,
// and all of them where the folder of recordings is there.

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <set>

#include "reports/checks/cases_report.h"
#include "tests/evidence_folder.h"
#include "validation/cases/reasons.h"
#include "validation/cases/repeat_case.h"

namespace metaprof {
namespace {

using What = CaseDifference::What;

double share(const CaseCounts& counts, What what) {
  return double(counts.equal[size_t(what)]) / double(counts.claimed);
}

void expect_all_equal(const std::string& log, FrameworkVersion framework = {}) {
  const CaseSummary summary = repeat_cases({.logs = {log}, .framework = framework});
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

// torch.nn.MultiheadAttention in eval mode without gradients, with and without weights as a result.
TEST(Recordings, AttentionOfModulesInEvalMode) {
  expect_all_equal("tests/data/recordings/ops_attention_modules.log.gz");
}

// Cases of 2.15 in which an operator does not what it did in 2.11.
TEST(Recordings, WhatChangedUntil215) {
  const FrameworkVersion version{.major = 2, .minor = 15};
  for (const char* log : {"shapes.h200.log.gz", "opinfo.h200.log.gz"}) {
    const std::string path = std::string("tests/data/recordings/cases-2.15/") + log;
    expect_all_equal(path, version);
    const CaseSummary before = repeat_cases({.logs = {path}});
    EXPECT_EQ(before.differing.size(), size_t(before.totals.total + before.totals.cut_short))
        << "some are equal by the rules of 2.11, too";
  }
}

// All recordings, or the part of them that is in the checkout.
class AllRecordings : public ::testing::Test {
 protected:
  CaseSummary repeat_files(std::initializer_list<const char*> names) const {
    CaseSelection selection;
    for (const char* name : names) selection.logs.push_back((evidence_.cases / name).string());
    CaseSummary summary = repeat_cases(selection);
    std::cout << cases_text(summary);
    return summary;
  }
  const EvidenceFolder evidence_ = evidence_folder();
};

// What is reached: of all recordings, and of the part, in which every difference that is known is present.
TEST_F(AllRecordings, Cuda) {
  const CaseSummary summary = repeat_files({"shapes.h200.log.gz", "opinfo.h200.log.gz"});
  const CaseCounts& counts = summary.totals;
  const bool whole = evidence_.whole;
  EXPECT_GE(double(counts.claimed) / double(counts.total), whole ? 0.96 : 0.98);
  EXPECT_GE(share(counts, What::outputs), whole ? 0.998 : 0.997);
  EXPECT_GE(share(counts, What::saved), whole ? 0.998 : 1);
  EXPECT_GE(share(counts, What::forward_events), whole ? 0.99 : 0.997);
  EXPECT_GE(share(counts, What::backward_events), whole ? 0.999 : 0.997);
  EXPECT_GE(share(counts, What::grads), whole ? 0.998 : 1);
  for (const CaseResult& result : summary.differing) EXPECT_NE(result.reason, "") << result.name;
}

class RecordingsOf215 : public ::testing::TestWithParam<std::filesystem::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordingsOf215);
INSTANTIATE_TEST_SUITE_P(, RecordingsOf215, ::testing::ValuesIn(whole_evidence("recordings/ops-2.15")),
                         [](const auto&) { return "All"; });

// The levels of 2.11.
TEST_P(RecordingsOf215, Cuda) {
  const std::filesystem::path& folder = GetParam();
  CaseSelection selection;
  selection.framework = {.major = 2, .minor = 15};
  for (const char* name : {"shapes.h200.log.gz", "opinfo.h200.log.gz"})
    selection.logs.push_back((folder / name).string());
  const CaseSummary summary = repeat_cases(selection);
  const CaseCounts& counts = summary.totals;
  EXPECT_GE(double(counts.claimed) / double(counts.total), 0.985);
  EXPECT_GE(share(counts, What::outputs), 0.998);
  EXPECT_GE(share(counts, What::saved), 0.999);
  EXPECT_GE(share(counts, What::forward_events), 0.999);
  EXPECT_GE(share(counts, What::backward_events), 0.999);
  EXPECT_GE(share(counts, What::grads), 0.999);
}

TEST_F(AllRecordings, OtherDevices) {
  const CaseCounts counts = repeat_files({"shapes.a100.log.gz", "shapes.rtx4090.log.gz"}).totals;
  EXPECT_GE(double(counts.claimed) / double(counts.total), 0.95);
  for (const What what :
       {What::outputs, What::saved, What::forward_events, What::backward_events, What::grads})
    EXPECT_GE(share(counts, what), 0.99);
}

TEST_F(AllRecordings, Cpu) {
  const CaseCounts counts = repeat_files({"shapes.cpu.log.gz", "opinfo.cpu.log.gz"}).totals;
  EXPECT_GE(share(counts, What::outputs), evidence_.whole ? 0.998 : 0.978);
  EXPECT_GE(share(counts, What::saved), evidence_.whole ? 0.995 : 0.991);
  EXPECT_GE(share(counts, What::grads), evidence_.whole ? 0.999 : 0.997);
}

// A line that explains no difference any more is to be deleted.
TEST(KnownDifferences, EachExplainsACase) {
  std::set<const KnownDifference*> unused;
  for (const KnownDifference& known : known_differences()) unused.insert(&known);
  for (const auto& entry : std::filesystem::directory_iterator(part_of_the_evidence().cases))
    for (const CaseResult& result : repeat_cases({.logs = {entry.path().string()}}).differing)
      unused.erase(reason_for(result));
  for (const KnownDifference* known : unused)
    ADD_FAILURE() << known->cases << " | " << known->devices << " | " << known->what;
}

}  // namespace
}  // namespace metaprof
