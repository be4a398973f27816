// Records for planners, of tests/data/traces/two_layers.trace against those on file, and the sums that
// planners rely on. After a change that is meant: METAPROF_WRITE_GOLDEN=1 ./test reports, and look at git's
// difference.

#include "reports/plans/plan_records.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "meta/trace/text.h"
#include "profiler/timeline.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

class PlanRecords : public testing::Test {
 protected:
  PlanRecords() {
    report.model = "two_layers";
    report.device = "toy";
    report.root_type = "TwoLayers";
    report.input = plan_input(
        trace, kFirstGpu, {.bytes_per_second = 1e6, .flops_f64 = 1e6, .flops_f32 = 1e6, .flops_f16 = 1e6});
  }

  std::string golden(const std::string& format) const {
    const std::string file = "tests/data/reports/two_layers.plan." + format;
    const std::string text = plan_record(report, format);
    if (std::getenv("METAPROF_WRITE_GOLDEN")) std::ofstream(file) << text;
    EXPECT_EQ(text, read_file(file)) << format;
    return text;
  }

  const Trace trace = parse_trace(read_file("tests/data/traces/two_layers.trace"));
  PlanReport report;
};

// x needs no gradient, so the chain begins in fc1. h (512 B) goes to relu, r (512) to fc2, y (64) to the
// mean.
TEST_F(PlanRecords, RotorIsAChain) {
  const Json json = Json::parse(golden("rotor"));
  EXPECT_EQ(json["input"], 128);
  ASSERT_EQ(json["stages"].size(), 4u);
  const auto column = [&](const char* field) {
    std::vector<int64_t> values;
    for (const Json& stage : json["stages"]) values.push_back(stage[field]);
    return values;
  };
  EXPECT_EQ(column("x"), (std::vector<int64_t>{512, 512, 64, 4}));
  // fc1 saves the input, which is not its own; relu its result; fc2 nothing of its own.
  EXPECT_EQ(column("xbar"), (std::vector<int64_t>{512, 512, 64, 4}));
  // fc2's forward takes 1024 B of workspace and its result, 1088 B at most.
  EXPECT_EQ(column("ftmp"), (std::vector<int64_t>{0, 0, 1024, 0}));
  // fc2 makes 512 + 128 + 8: its input's gradient and those of two parameters.
  EXPECT_EQ(column("btmp"), (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(column("gradients"), (std::vector<int64_t>{256, 0, 136, 0}));
  EXPECT_EQ(json["stages"][1]["ftime"], 0.001024);
}

TEST_F(PlanRecords, CheckmateIsInTopologicalOrder) {
  const Json json = Json::parse(golden("checkmate"));
  EXPECT_EQ(json["fixed_parameter_cost"], 2 * 392);
  std::set<int64_t> seen;
  for (const Json& node : json["nodes"]) {
    for (const Json& before : node["predecessors"]) EXPECT_TRUE(seen.contains(before)) << node;
    EXPECT_TRUE(seen.insert(node["id"].get<int64_t>()).second);
  }
}

TEST_F(PlanRecords, SacHasTheFrameworksFields) {
  const Json json = Json::parse(golden("sac"));
  for (const char* order : {"fw_pre_order", "bw_pre_order", "fw_post_order", "bw_post_order"})
    EXPECT_EQ(json["mod_order"][order].size(), 4u) << order;
  EXPECT_EQ(json["mod_order"]["fw_pre_order"],
            (Json{"TwoLayers", "TwoLayers.fc1", "TwoLayers.act", "TwoLayers.fc2"}));
  EXPECT_EQ(json["mod_order"]["fw_post_order"],
            (Json{"TwoLayers.fc1", "TwoLayers.act", "TwoLayers.fc2", "TwoLayers"}));
  EXPECT_EQ(json["mod_order"]["bw_pre_order"],
            (Json{"TwoLayers", "TwoLayers.fc2", "TwoLayers.act", "TwoLayers.fc1"}));
  EXPECT_EQ(json["mod_order"]["bw_post_order"],
            (Json{"TwoLayers.fc2", "TwoLayers.act", "TwoLayers.fc1", "TwoLayers"}));
  const Json& relu = json["mod_stats"][2];
  EXPECT_EQ(relu["fqn"], "TwoLayers.act");
  EXPECT_EQ(relu["input_per_module"], 512);
  EXPECT_EQ(relu["output_per_module"], 512);
  EXPECT_EQ(relu["act_fw_per_module"], 0);
  EXPECT_EQ(relu["act_total"], 128 + 512);
  EXPECT_EQ(relu["grad_total"], 136);  // of fc2, whose backward is over
  EXPECT_EQ(relu["fw_runtime_per_module"], 1.024);
  EXPECT_EQ(relu["is_leaf"], true);
  EXPECT_EQ(json["mod_stats"][0]["is_leaf"], false);
  EXPECT_EQ(json["mod_stats"][0]["param_per_module"], 392);
}

TEST_F(PlanRecords, KnapsackListsAreShares) {
  const Json json = Json::parse(golden("knapsack"));
  double memory = 0, runtimes = 0;
  for (const Json& share : json["memory"]) memory += share.get<double>();
  for (const Json& share : json["runtimes"]) runtimes += share.get<double>();
  EXPECT_DOUBLE_EQ(memory, 1);
  EXPECT_DOUBLE_EQ(runtimes, 1);
  EXPECT_EQ(json["bytes"], (Json{512, 4}));
}

// At every event the rows that are alive sum to the timeline.
TEST_F(PlanRecords, AllocationsSumToTheTimeline) {
  std::istringstream lines(golden("csv"));
  std::string head;
  std::getline(lines, head);
  EXPECT_EQ(head, "id,lower,upper,size");
  std::vector<int64_t> live(trace.events.size() + 1);
  int64_t id = 0, lower = 0, upper = 0, size = 0;
  int64_t expected_id = 0;
  for (char comma = 0; lines >> id >> comma >> lower >> comma >> upper >> comma >> size;) {
    EXPECT_EQ(id, expected_id++);
    EXPECT_LT(lower, upper);
    for (int64_t i = lower; i < upper; ++i) live[static_cast<size_t>(i)] += size;
  }
  EXPECT_GT(expected_id, 10);
  for (const Sample& sample : timeline(trace, kFirstGpu)) {
    int64_t total = 0;
    for (const Bytes bytes : sample.by_category) total += bytes.count;
    EXPECT_EQ(live[sample.event], total) << sample.event;
  }
}

TEST_F(PlanRecords, JsonHasEverything) {
  const Json json = Json::parse(golden("json"));
  EXPECT_EQ(json["nodes"]["granularity"], "function");
  EXPECT_EQ(json["chain"]["stages"], Json::parse(plan_record(report, "rotor"))["stages"]);
  EXPECT_EQ(json["modules"], Json::parse(plan_record(report, "sac"))["mod_stats"]);
  EXPECT_EQ(json["tensors"].size(), report.input.storages.size());
}

TEST_F(PlanRecords, AnUnknownFormatIsAnError) {
  try {
    plan_record(report, "yaml");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "there is no format 'yaml'; there are rotor, checkmate, sac, knapsack, csv, json");
  }
}

TEST_F(PlanRecords, AModelWithoutBackwardHasRecords) {
  for (const char* text :
       {"", "# phase forward step 0\n# enter\n> x::op\n+ 1 8 activation\n< f32[2]@1\n# leave\n"}) {
    report.input = plan_input(parse_trace(text), kFirstGpu, {});
    for (const std::string& format : plan_formats()) {
      const std::string record = plan_record(report, format);
      EXPECT_TRUE(format == "csv" || Json::accept(record)) << format << record;
    }
  }
}

}  // namespace
}  // namespace metaprof
