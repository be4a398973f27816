// Cases recorded from PyTorch 2.11 (and 2.15) on the emulated device: a small selection that is part of the checkout,
// and all of them where the folder of recordings is there.

#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <set>

#include "reports/checks/cases_report.h"
#include "tests/evidence_folder.h"
#include "validation/cases/reasons.h"
#include "validation/cases/repeat_case.h"

namespace metaprof {
namespace {

using What = CaseDifference::What;

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
struct Reached {
  int64_t total, claimed, outputs, saved, forward_events, backward_events, grads;
  bool operator==(const Reached&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Reached& r) {
  return out << r.total << " cases, " << r.claimed << " claimed; equal: outputs " << r.outputs << ", saved "
             << r.saved << ", forward events " << r.forward_events << ", backward events "
             << r.backward_events << ", gradients " << r.grads;
}

Reached reached(const CaseCounts& counts) {
  const auto equal = [&](What what) { return counts.equal[size_t(what)]; };
  return {counts.total,
          counts.claimed,
          equal(What::outputs),
          equal(What::saved),
          equal(What::forward_events),
          equal(What::backward_events),
          equal(What::grads)};
}

// As many as were reached, no fewer and no more: a better figure is to be written down. Each difference has its reason in
// validation/cases/known_differences.inc. Returns the names of those that have none.
std::vector<std::string> expect_reached(const std::filesystem::path& folder,
                                        std::initializer_list<const char*> names, const Reached& expected,
                                        FrameworkVersion framework = {}) {
  CaseSelection selection;
  selection.framework = framework;
  for (const char* name : names) selection.logs.push_back((folder / name).string());
  const CaseSummary summary = repeat_cases(selection);
  EXPECT_EQ(reached(summary.totals), expected) << cases_text(summary);
  std::vector<std::string> unexplained;
  for (const CaseResult& result : summary.differing)
    if (result.reason.empty()) unexplained.push_back(result.name);
  return unexplained;
}

class AllRecordings : public ::testing::Test {
 protected:
  const EvidenceFolder evidence_ = evidence_folder();
};

TEST_F(AllRecordings, Cuda) {
  const Reached of_part{1403, 1396, 1394, 1396, 1394, 1393, 1396},
      of_all{8351, 8309, 8300, 8309, 8306, 8305, 8309};
  EXPECT_EQ(expect_reached(evidence_.cases, {"shapes.h200.log.gz", "opinfo.h200.log.gz"},
                           evidence_.whole ? of_all : of_part),
            std::vector<std::string>());
}

TEST_F(AllRecordings, OtherDevices) {
  const Reached of_part{56, 56, 56, 56, 56, 56, 56}, of_all{342, 342, 342, 342, 342, 342, 342};
  EXPECT_EQ(expect_reached(evidence_.cases, {"shapes.a100.log.gz", "shapes.rtx4090.log.gz"},
                           evidence_.whole ? of_all : of_part),
            std::vector<std::string>());
}

TEST_F(AllRecordings, Cpu) {
  const Reached of_part{1501, 1496, 1488, 1489, 1496, 1496, 1495},
      of_all{8503, 8477, 8461, 8443, 8477, 8477, 8476};
  EXPECT_EQ(expect_reached(evidence_.cases, {"shapes.cpu.log.gz", "opinfo.cpu.log.gz"},
                           evidence_.whole ? of_all : of_part),
            std::vector<std::string>());
}

class RecordingsOf215 : public ::testing::TestWithParam<std::filesystem::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordingsOf215);
INSTANTIATE_TEST_SUITE_P(, RecordingsOf215, ::testing::ValuesIn(whole_evidence("recordings/ops-2.15")),
                         [](const auto&) { return "All"; });

TEST_P(RecordingsOf215, Cuda) {
  // A checkpoint of 2.15 packs what is saved by hooks, which are Python: the recording shows what they do, not that they are there.
  EXPECT_EQ(expect_reached(GetParam(), {"shapes.h200.log.gz", "opinfo.h200.log.gz"},
                           {8464, 8393, 8384, 8393, 8389, 8388, 8393}, {.major = 2, .minor = 15}),
            std::vector<std::string>{"shapes/engine/f32/checkpoint-64-64"});
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
