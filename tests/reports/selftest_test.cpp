// What `metaprof selftest` shows, of results made by hand.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/checks/selftest_report.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

CheckResult result(MeasuredOn on, int64_t recorded, int64_t estimated) {
  CheckResult result;
  result.on = on;
  result.phases = 1;
  for (const char* field : {"allocated_bytes.peak", "reserved_bytes.peak"})
    result.rows.push_back(
        {.part = {Phase::forward, 0, -1}, .field = field, .recorded = recorded, .estimated = estimated});
  return result;
}

// One program is equal everywhere. In one the same requests lead to other figures on the card. In one the card asks for more.
SelftestReport report() {
  SelftestReport report;
  report.gpu = true;
  report.device_title = "NVIDIA H200";
  report.device_memory = int64_t{140} << 30;
  report.machine.torch = "2.11.0+cu130";
  report.machine.cuda = "13.0";
  report.machine.python = "3.12.3";
  report.machine.driver = "580.159.04";
  report.machine.cudnn = 91900;
  report.date = "2026-11-26T05:10:00Z";
  report.seconds = 84;
  report.programs.push_back({.name = "fine",
                             .what = "Fine.",
                             .problems = {},
                             .emulated = result(MeasuredOn::emulated, 100, 100),
                             .real = result(MeasuredOn::real, 100, 100),
                             .real_difference = {}});
  report.programs.push_back({.name = "addresses",
                             .what = "Addresses.",
                             .problems = {},
                             .emulated = result(MeasuredOn::emulated, 100, 100),
                             .real = result(MeasuredOn::real, 120, 100),
                             .real_difference = {},
                             .driver_decides = true});
  report.programs.push_back({.name = "plans",
                             .what = "Plans.",
                             .problems = {},
                             .emulated = result(MeasuredOn::emulated, 100, 100),
                             .real = result(MeasuredOn::real, 150, 100),
                             .real_difference = EventMismatch{7, "+ 50 in aten::conv2d", "- 8"}});
  return report;
}

TEST(SelftestReport, TheFirstLinesSayHowManyAreEqual) {
  const std::string text = selftest_text(report());
  EXPECT_TRUE(text.starts_with(
      "real = emulated in every phase: 1 of 3 programs (in every request: 2); real = estimate: 1\n"
      "NVIDIA H200 (140.0 GiB), driver 580.159.04, PyTorch 2.11.0+cu130, cuDNN 9.19.0, Python 3.12.3, 84 "
      "s\n"))
      << text;
}

TEST(SelftestReport, WhatDiffersHasItsReason) {
  const std::string text = selftest_text(report());
  EXPECT_EQ(text.find("\nfine: "), std::string::npos) << "it has no more than its line";
  for (const char* expected :
       {"\naddresses: Addresses.\n  the requests are equal, and the allocator's model repeats the real run "
        "address by address: ",
        "\nplans: Plans.\n  the first request that differs: line 7 of the log: real + 50 in aten::conv2d; "
        "emulated - 8\n",
        "  forward of step 1 reserved_bytes.peak: 100 estimate 100 emulated 150 real\n"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << text;
}

TEST(SelftestReport, TheJsonHasEveryFigureAndTheVersions) {
  const Json json = Json::parse(selftest_json(report(), "1.2.3"));
  EXPECT_EQ(json["metaprof"], "1.2.3");
  EXPECT_EQ(json["driver"], "580.159.04");
  EXPECT_EQ(json["cudnn"], "9.19.0");
  EXPECT_EQ(json["equal"],
            (Json{{"programs", 3}, {"real_emulated_requests", 2}, {"real_emulated", 1}, {"estimate", 1}}));
  EXPECT_TRUE(json["programs"][0]["equal"].get<bool>());
  EXPECT_TRUE(json["programs"][1]["driver_decides"].get<bool>());
  EXPECT_EQ(json["programs"][2]["real_difference"],
            (Json{{"line", 7}, {"real", "+ 50 in aten::conv2d"}, {"emulated", "- 8"}}));
  EXPECT_EQ(json["programs"][2]["phases"][0]["reserved_bytes"]["peak"],
            (Json{{"estimate", 100}, {"emulated", 100}, {"real", 150}}));
}

}  // namespace
}  // namespace metaprof
