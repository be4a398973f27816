#include "reports/checks/cases_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/evidence/case_text.h"
#include "validation/cases/reasons.h"
#include "validation/cases/repeat_case.h"

namespace metaprof {
namespace {

using What = CaseDifference::What;

CaseResult unequal(const std::string& name, const std::string& op, What what) {
  CaseResult result{.name = name, .op = op};
  result.differences.push_back({what, "one thing", "another"});
  return result;
}

CaseSummary three_cases() {
  CaseSummary report;
  report.add({.name = "shapes/sine/f32/1", .op = "sine"});
  report.add(unequal("shapes/sine/f32/2", "sine", What::grads));
  report.add({.name = "shapes/other/f32/1", .op = "other", .missing = {"aten::other"}});
  return report;
}

TEST(CasesReport, Counts) {
  const CaseSummary report = three_cases();
  EXPECT_EQ(report.totals.total, 3);
  EXPECT_EQ(report.totals.claimed, 2);
  EXPECT_EQ(report.totals.equal, (std::array<int64_t, kWhats>{2, 2, 2, 2, 1}));
  EXPECT_EQ(report.by_op.at("other").claimed, 0);
}

// Of what a case reads from a device whose memory is 0 nothing follows, neither for nor against.
TEST(CasesReport, CasesThatAreCutShortDoNotCount) {
  CaseSummary report = three_cases();
  report.add({.name = "shapes/nonzero/f32/1", .op = "nonzero", .cut_short = true});
  EXPECT_EQ(report.totals.total, 3);
  EXPECT_EQ(report.totals.claimed, 2);
  EXPECT_EQ(report.totals.equal, three_cases().totals.equal);
  const std::string text = cases_text(report);
  EXPECT_NE(
      text.find(
          "\n1 cases read device memory, which is 0 in recordings: compared up to that (1 equal) and not "
          "counted\n"),
      text.npos)
      << text;
  EXPECT_EQ(text.find("nonzero"), text.npos) << text;
  const auto json = nlohmann::json::parse(cases_json(report));
  EXPECT_EQ(json["cut_short"]["cases"], 1);
  EXPECT_EQ(json["cut_short"]["equal"], 1);
  EXPECT_EQ(json["total"], 3);
}

TEST(CasesReport, Text) {
  const std::string text = cases_text(three_cases());
  EXPECT_NE(
      text.find("aten::other                                                         1              1\n"),
      text.npos)
      << text;
  EXPECT_NE(text.find("66.67%"), text.npos) << text;  // 2 of 3 claimed
  EXPECT_NE(text.find("50.00%"), text.npos) << text;  // 1 of 2 equal in grads
  EXPECT_NE(text.find("     1  without a known reason\n"), text.npos) << text;
  EXPECT_EQ(cases_differences_text(three_cases()),
            "shapes/sine/f32/2\n"
            "  grads           expected one thing\n"
            "                  got      another\n");
}

TEST(CasesReport, Json) {
  const auto json = nlohmann::json::parse(cases_json(three_cases()));
  EXPECT_EQ(json["schema"], "metaprof.ops_replay");
  EXPECT_EQ(json["total"], 3);
  EXPECT_EQ(json["claimed"], 2);
  EXPECT_EQ(json["outputs_equal"], 2);
  EXPECT_EQ(json["saved_equal"], 2);
  EXPECT_EQ(json["forward_events_equal"], 2);
  EXPECT_EQ(json["backward_events_equal"], 2);
  EXPECT_EQ(json["grads_equal"], 1);
  EXPECT_EQ(json["by_op"]["sine"]["grads_equal"], 1);
  ASSERT_EQ(json["differences"].size(), 1u);
  EXPECT_EQ(json["differences"][0]["case"], "shapes/sine/f32/2");
  EXPECT_EQ(json["differences"][0]["what"], "grads");
  EXPECT_EQ(json["differences"][0]["expected"], "one thing");
  EXPECT_EQ(json["differences"][0]["got"], "another");
}

TEST(CasesReport, OnlyCasesOfAName) {
  TemporaryLog file(std::string(kSineOfDouble) + with(kSineOfDouble, "shapes/sine", "shapes/again"));
  EXPECT_EQ(repeat_cases({.logs = {file.path()}, .only = "*/again/*"}).totals.total, 1);
  EXPECT_EQ(repeat_cases({.logs = {file.path()}}).totals.total, 2);
  try {
    repeat_cases({.logs = {file.path()}, .only = "*/nothing/*"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no recorded case is named like '*/nothing/*'");
  }
}

TEST(CasesReport, BytesOfAllocationsThatDiffer) {
  CaseSummary report;
  CaseResult more = unequal("shapes/sine/f32/3", "sine", What::forward_events);
  more.differences[0].bytes = 512;
  CaseResult less = unequal("shapes/sine/f32/4", "sine", What::forward_events);
  less.differences[0].bytes = -768;
  report.add(more);
  report.add(less);
  const std::string text = cases_text(report);  // 512 − 768 = −256 over two cases
  EXPECT_NE(text.find("sine                                                2             -256        0       "
                      "        +0\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(nlohmann::json::parse(cases_json(report))["differences"][1]["bytes"], -768);
}

TEST(CasesReport, ReasonsStandInTheJson) {
  CaseSummary report;
  CaseResult hook = unequal("shapes/engine/f32/hook-64-64", "engine", What::grads);
  hook.reason = reason_for(hook)->reason;
  report.add(hook);
  const auto json = nlohmann::json::parse(cases_json(report));
  EXPECT_TRUE(json["differences"][0]["reason"].get<std::string>().starts_with("a hook is a Python function"));
}

TEST(Reasons, AreReadFromLines) {
  const auto known = parse_known_differences("# a remark\n\n a/* | cpu | saved,grads | because \n");
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].cases, "a/*");
  EXPECT_EQ(known[0].devices, "cpu");
  EXPECT_EQ(known[0].what, "saved,grads");
  EXPECT_EQ(known[0].reason, "because");
  try {
    parse_known_differences("a/* | because\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "known differences, line 1: expected CASES | DEVICES | WHAT | REASON, got 'a/* | because'");
  }
}

TEST(Reasons, BelongToDevices) {
  CaseResult result = unequal("opinfo/fft.hfft/1/f32", "fft.hfft", What::outputs);
  result.device = "cpu";
  EXPECT_NE(reason_for(result), nullptr);
  result.device = "h200";
  EXPECT_EQ(reason_for(result), nullptr);
}

TEST(Reasons, CoverOnlyWhatTheyName) {
  EXPECT_NE(reason_for(unequal("shapes/engine/f32/hook-64-64", "engine", What::grads)), nullptr);
  EXPECT_EQ(reason_for(unequal("shapes/engine/f32/hook-64-64", "engine", What::saved)), nullptr);
  EXPECT_EQ(reason_for(unequal("shapes/engine/f32/same_twice-64-64", "engine", What::grads)), nullptr);
}

}  // namespace
}  // namespace metaprof
