// metaprof together: several processes on one card.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace metaprof {
namespace {

std::string report_of(const std::string& words, const std::string& name) {
  std::string file = testing::TempDir() + "together_" + std::to_string(getpid()) + "_" + name + ".json";
  EXPECT_EQ(run_program("profile " + words + " --json " + file).exit_code, 0);
  return file;
}

nlohmann::json together(const std::string& words, int status = 0) {
  const Outcome outcome = run_program("together " + words + " --json -");
  EXPECT_EQ(outcome.exit_code, status) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

constexpr const char* kStep = "gpt2 --device l40s --framework 2.11 --batch 4 --sequence 512";

TEST(Together, ProcessesAddUpWithTheirContexts) {
  const std::string a = report_of(kStep, "a");
  const auto one = together(a), two = together(a + " " + a);
  EXPECT_TRUE(one["fits"]);
  EXPECT_FALSE(one["needs_limits"]);
  const int64_t takes = one["takes_bytes"];
  EXPECT_EQ(two["takes_bytes"], 2 * takes);
  const auto& row = one["rows"][0];
  EXPECT_EQ(takes, row["reserved_bytes"].get<int64_t>() + row["outside_bytes"].get<int64_t>());
  EXPECT_EQ(row["request_bytes"], takes);
  EXPECT_GT(row["outside_bytes"], 0);
}

// One that can run with 2 GiB less than it takes.
constexpr const char* kElastic = "llama-3.2-1b --device l40s --framework 2.11";

// With the limits that are said each process runs, and all fit.
TEST(Together, LimitsMakeRoom) {
  const std::string a = report_of(kElastic, "elastic");
  const int64_t takes = together(a)["takes_bytes"], least = together(a)["least_bytes"];
  ASSERT_LT(least, takes);
  const std::string memory = " --memory " + std::to_string(takes + least + (int64_t{4} << 20)) + "B";
  const auto both = together(a + " " + a + memory);
  EXPECT_TRUE(both["needs_limits"]);
  int64_t all = 0;
  for (const auto& row : both["rows"]) {
    all += row["request_bytes"].get<int64_t>();
    const std::string limit = std::to_string(row["request_bytes"].get<int64_t>()) + "B";
    EXPECT_EQ(run_program(std::string("profile ") + kElastic + " --memory " + limit).exit_code, 0);
  }
  EXPECT_LE(all, both["memory_bytes"]);
  EXPECT_EQ(together(a + " " + a + " --memory " + std::to_string(2 * least - 1) + "B", 1)["fits"], false);
}

TEST(Together, TheTextHasTheLineToPaste) {
  const std::string a = report_of(kElastic, "elastic");
  const int64_t least = together(a)["least_bytes"];
  const Outcome outcome = run_program("together " + a + " " + a + " --memory " +
                                      std::to_string(2 * least + (int64_t{8} << 20)) + "B");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("FITS l40s if each is limited: ")) << outcome.out;
  EXPECT_NE(outcome.out.find("torch.cuda.set_per_process_memory_fraction(0."), std::string::npos)
      << outcome.out;
}

TEST(Together, AnotherCardHasAnotherContext) {
  const std::string a = report_of(kStep, "a");
  const auto there = together(a + " --device h100");
  EXPECT_NE(there["rows"][0]["outside_bytes"], together(a)["rows"][0]["outside_bytes"]);
  EXPECT_EQ(there["notes"].size(), 1U);
}

TEST(Together, TheJsonFollowsItsSchema) {
  const std::string file = testing::TempDir() + "together.json", a = report_of(kStep, "a");
  ASSERT_EQ(run_program("together " + a + " " + a + " --json " + file).exit_code, 0);
  const int status = std::system(
      (METAPROF_PYTHON " tests/validate_json.py reports/schema/together.schema.json " + file).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(status, 0);
}

TEST(Together, WhatIsNoReportIsRefused) {
  const std::string other = testing::TempDir() + "together_other.json";
  EXPECT_EQ(run_program("devices --json " + other).exit_code, 0);
  expect_refusal("together " + other,
                 other +
                     ": is a metaprof.devices; together reads reports of metaprof profile --json and "
                     "metaprof run --json");
  expect_refusal("together nofile.json", "nofile.json: no such file");
  expect_refusal("together", "REPORT is required ('metaprof together --help' shows the options)");
  std::ofstream(other)
      << R"({"schema": "metaprof.run", "device": "t4", "program": ["a.py"], "ranks": [{"device": 0,
    "outside_allocator": {"context": 5}, "out_of_memory": {"step": 0}, "peak": {"reserved_bytes": 7}}]})";
  expect_refusal(
      "together " + other,
      other +
          ": memory ran out, so that what it would take is not known; make the report with more --memory");
}

TEST(Together, ARunIsItsLargestRank) {
  const std::string file = testing::TempDir() + "together_run.json";
  std::ofstream(file)
      << R"({"schema": "metaprof.run", "device": "t4", "program": ["python", "a.py"], "ranks": [
    {"device": 0, "outside_allocator": {"context": 5}, "out_of_memory": null, "peak": {"reserved_bytes": 70}},
    {"device": 0, "outside_allocator": {"context": 6}, "out_of_memory": null, "peak": {"reserved_bytes": 90}}]})";
  const auto report = together(file);
  EXPECT_EQ(report["takes_bytes"], 96);
  EXPECT_EQ(report["rows"][0]["of"], "python a.py");
  EXPECT_EQ(report["device"], "t4");
}

}  // namespace
}  // namespace metaprof
