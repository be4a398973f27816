#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kBase = "tests/data/fixtures/base.pt2";  // Linear(4, 3), relu, cross-entropy
const std::string kResnet = "tests/data/models/resnet18.pt2";

Json json_of(const std::string& words, int exit_code = 0) {
  const Outcome outcome = run_program(words + " --json -");
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  return Json::parse(outcome.out);
}

int64_t reserved(const std::string& words) {
  return Json::parse(run_program("profile " + words + " --json -").out)["peak"]["reserved_bytes"]
      .get<int64_t>();
}

// What `fit` found fits, and one more does not.
TEST(Fit, TheLargestBatchIsTheLastThatFits) {
  const Json json = json_of("fit " + kResnet + " --device t4 --memory 2GiB --margin 0");
  EXPECT_EQ(json["schema"], "metaprof.fit");
  const Json& row = json["rows"][0];
  const auto largest = row["largest"].get<int64_t>();
  EXPECT_GT(largest, 1);
  EXPECT_EQ(row["memory_bytes"], int64_t{2} << 30);
  EXPECT_LE(row["peak_reserved_bytes"], int64_t{2} << 30);
  const std::string words = kResnet + " --device t4 --memory 2GiB --batch ";
  EXPECT_EQ(run_program("profile " + words + std::to_string(largest)).exit_code, 0);
  EXPECT_EQ(run_program("profile " + words + std::to_string(largest + 1)).exit_code, 1);
  EXPECT_LE(row["runs"], 2 * 20) << "doublings, then halvings";
}

TEST(Fit, AMarginLeavesThatShareFree) {
  const Json json = json_of("fit " + kResnet + " --memory 2GiB --margin 50%");
  EXPECT_EQ(json["rows"][0]["memory_bytes"], int64_t{1} << 30);
  EXPECT_LE(json["rows"][0]["peak_reserved_bytes"], int64_t{1} << 30);
}

TEST(Fit, ARowForEachCombination) {
  const Json json = json_of("fit " + kResnet +
                            " --memory 4GiB --device t4,a100 --precision fp32,amp-bf16 "
                            "--optimizer sgd,adamw");
  ASSERT_EQ(json["rows"].size(), 8u);
  EXPECT_EQ(json["rows"][0]["options"]["device"], "t4");
  EXPECT_EQ(json["rows"][1]["options"]["optimizer"], "adamw");
  EXPECT_EQ(json["rows"][7]["options"]["precision"], "amp-bf16");
  // AdamW keeps two more tensors for each parameter than SGD.
  EXPECT_GE(json["rows"][0]["largest"], json["rows"][1]["largest"]);
}

TEST(Fit, NotEvenOneIsAFindingWithWhatItNeeds) {
  const Outcome outcome = run_program("fit " + kResnet + " --memory 100MiB");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find(" none "), std::string::npos) << outcome.out;
  const Json json = json_of("fit " + kResnet + " --memory 100MiB", 1);
  EXPECT_TRUE(json["rows"][0]["largest"].is_null());
  EXPECT_EQ(json["rows"][0]["peak_reserved_bytes"], reserved(kResnet + " --batch 1"));
}

TEST(Fit, SequencesAreFoundToo) {
  const std::string gpt2 = "tests/data/models/gpt2.pt2";
  const Json found = json_of("fit " + gpt2 + " --memory 8GiB --margin 0 --find sequence --batch 2");
  const auto length = found["rows"][0]["largest"].get<int64_t>();
  EXPECT_EQ(found["dimension"], "sequence");
  const std::string words = gpt2 + " --memory 8GiB --batch 2 --sequence ";
  EXPECT_EQ(reserved(words + std::to_string(length)), found["rows"][0]["peak_reserved_bytes"].get<int64_t>());
  EXPECT_EQ(run_program("profile " + words + std::to_string(length + 1)).exit_code, 1);
}

TEST(Fit, OptionsThatContradict) {
  expect_refusal("fit " + kBase + " --find width",
                 "--find: 'width' is no dimension of the inputs; there are batch, sequence");
  expect_refusal("fit " + kBase + " --batch 4", "--batch: is what fit looks for; --find sequence keeps it");
  expect_refusal("fit " + kBase + " --find sequence --sequence 4",
                 "--sequence: is what --find sequence looks for");
  expect_refusal("fit " + kBase + " --margin 100%", "--margin: 100% leaves nothing");
  expect_refusal("fit " + kBase + " --find sequence",
                 kBase + ": --sequence: no input has it: no tensor of integers of 2 dimensions or more");
}

TEST(Sweep, CsvHasALineForEachCombination) {
  const Outcome outcome = run_program(
      "sweep " + kResnet + " --batch 1,2 --optimizer none,sgd --steps 1 --checkpoint none,'model.layer?'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(
      "device,precision,optimizer,optimizer_impl,checkpoint,accumulate,sequence,batch,parameter_bytes,"
      "saved_bytes,peak_allocated_bytes,peak_requested_bytes,peak_reserved_bytes,flops_forward,flops_"
      "backward,"
      "flops_recompute,fits,error\nh200,fp32,none,default,,1,,1,"))
      << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1 + 2 * 2 * 2);
}

TEST(Sweep, FiguresAreThoseOfProfile) {
  const Json json = json_of("sweep " + kResnet + " --batch 7 --steps 2");
  EXPECT_EQ(json["schema"], "metaprof.sweep");
  EXPECT_EQ(json["rows"][0]["peak_reserved_bytes"].get<int64_t>(),
            reserved(kResnet + " --batch 7 --steps 2"));
  EXPECT_TRUE(json["rows"][0]["fits"].get<bool>());
  EXPECT_TRUE(json["rows"][0]["error"].is_null());
}

TEST(Sweep, WhatCannotBeRunHasAnErrorInItsRow) {
  const Json unknown = json_of("sweep " + kBase + " --optimizer sgd,best --steps 1", 1);
  EXPECT_TRUE(unknown["rows"][0]["error"].is_null());
  EXPECT_TRUE(
      unknown["rows"][1]["error"].get<std::string>().starts_with("--optimizer: 'best' is not one of"));
  EXPECT_TRUE(unknown["rows"][1]["peak_reserved_bytes"].is_null());
}

TEST(Sweep, ATooSmallDeviceIsAFinding) {
  const Json json = json_of("sweep " + kResnet + " --memory 100MiB --steps 1", 1);
  EXPECT_FALSE(json["rows"][0]["fits"].get<bool>());
}

TEST(Sweep, RefusesWhatIsTooMuch) {
  std::string many;
  for (int i = 1; i <= 400; ++i) many += (i > 1 ? "," : "") + std::to_string(i);
  expect_refusal("sweep " + kBase + " --batch " + many + " --accumulate " + many,
                 "more than 100000 combinations; leave some values out");
  expect_refusal("sweep no-such.pt2", "no-such.pt2: no such file");
}

// The batch is written as numbers into every view of this export.
TEST(Inputs, AnotherBatchThanTheExports) {
  const Json seven = Json::parse(run_program("profile " + kResnet + " --batch 7 --steps 1 --json -").out);
  const Json exported = Json::parse(run_program("profile " + kResnet + " --steps 1 --json -").out);  // 32
  EXPECT_EQ(seven["options"]["batch"], 7);
  EXPECT_EQ(seven["flops"]["forward"].get<int64_t>() * 32, exported["flops"]["forward"].get<int64_t>() * 7);
  EXPECT_EQ(seven["parameters"]["bytes"], exported["parameters"]["bytes"]);
}

TEST(Inputs, SettingsAreShapesOrValues) {
  const Json set = Json::parse(
      run_program("profile " + kResnet + " --set x=7x3x224x224 --set labels=7 --steps 1 --json -").out);
  const Json batch = Json::parse(run_program("profile " + kResnet + " --batch 7 --steps 1 --json -").out);
  EXPECT_EQ(set["peak"]["allocated_bytes"], batch["peak"]["allocated_bytes"]);
}

TEST(Inputs, SettingsThatDoNotFitSayWhy) {
  const std::string words = "profile " + kResnet + " --set ";
  expect_refusal(words + "x", "--set: 'x' is no NAME=SHAPE or NAME=VALUE, as ids=4x512 or n=7");
  expect_refusal(words + "x=4xfive", "--set: 'x=4xfive' is no NAME=SHAPE or NAME=VALUE, as ids=4x512 or n=7");
  expect_refusal(words + "y=4x4", kResnet + ": there is no input tensor 'y'; there are: x, labels");
  expect_refusal(words + "x=4x4", kResnet + ": input x has 4 dimensions, [32,3,224,224]; [4,4] does not fit");
  expect_refusal_with("profile " + kResnet + " --set x=7x3x224x224",
                      {"a number in the export does not follow the new sizes of the inputs: export the model "
                       "with dynamic_shapes"});
}

}  // namespace
}  // namespace metaprof
