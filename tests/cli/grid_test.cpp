#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

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
  const Json json = json_of("fit " + kResnet + " --device t4 --memory 2GiB --context none");
  EXPECT_EQ(json["schema"], "metaprof.fit");
  const Json& row = json["rows"][0];
  const auto largest = row["largest"].get<int64_t>();
  EXPECT_GT(largest, 1);
  EXPECT_EQ(row["memory_bytes"], int64_t{2} << 30);
  EXPECT_LE(row["peak_reserved_bytes"], int64_t{2} << 30);
  const std::string words = kResnet + " --device t4 --memory 2GiB --context none --batch ";
  EXPECT_EQ(run_program("profile " + words + std::to_string(largest)).exit_code, 0);
  EXPECT_EQ(run_program("profile " + words + std::to_string(largest + 1)).exit_code, 1);
  EXPECT_LE(row["runs"], 2 * 20) << "doublings, then halvings";
}

TEST(Fit, AMarginLeavesThatShareFree) {
  const Json json = json_of("fit " + kResnet + " --memory 2GiB --margin 50% --context none");
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
  const Json found = json_of("fit " + gpt2 + " --memory 4GiB --find sequence --batch 2");
  const auto length = found["rows"][0]["largest"].get<int64_t>();
  EXPECT_EQ(found["dimension"], "sequence");
  const std::string words = gpt2 + " --memory 4GiB --batch 2 --sequence ";
  EXPECT_EQ(reserved(words + std::to_string(length)), found["rows"][0]["peak_reserved_bytes"].get<int64_t>());
  EXPECT_EQ(run_program("profile " + words + std::to_string(length + 1)).exit_code, 1);
}

// Whatever the rows have in common, each has a cell for each column.
TEST(Fit, ColumnsAreThoseOfAllRows) {
  const std::string words = "fit " + kResnet + " --memory 4GiB --steps 1 --optimizer sgd ";
  const Outcome checkpoint = run_program(words + "--checkpoint 'model.layer?',none");
  EXPECT_EQ(checkpoint.exit_code, 0) << checkpoint.err;
  EXPECT_NE(checkpoint.out.find("checkpoint"), std::string::npos) << checkpoint.out;
  const std::string mixed = run_program(words + "--accumulate 1,4 --optimizer-impl foreach,default").out;
  std::istringstream lines(mixed);
  std::string line, header;
  size_t rows = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("device ")) header = line;
    if (!line.starts_with("h200 ")) continue;
    ++rows;
    const size_t column = header.find("accumulate");
    ASSERT_NE(column, std::string::npos) << mixed;
    const std::string cell = line.substr(column, 10);
    EXPECT_TRUE(cell.find('1') != std::string::npos || cell.find('4') != std::string::npos) << mixed;
  }
  EXPECT_EQ(rows, 4u) << mixed;
  const Json json = json_of(words + "--accumulate 1,4");
  EXPECT_EQ(json["rows"][0]["options"]["accumulate"], 1);
  EXPECT_EQ(json["rows"][1]["options"]["accumulate"], 4);
  EXPECT_TRUE(json["rows"][0]["options"]["checkpoint"].is_null());
}

// Options of the step that decide the result stand in every report, and every command takes them.
TEST(Options, EveryCommandThatEstimatesTakesAllOfThem) {
  const std::string options =
      " --env CUBLAS_WORKSPACE_CONFIG=:4096:2 --strict --clip-norm 1 --clip-value 2 --zero-grad-to-none "
      "false --steps 2"
      " --workspaces none";
  const Json profile = Json::parse(run_program("profile " + kBase + options + " --json -").out)["options"];
  const Json sweep = json_of("sweep " + kBase + options)["rows"][0]["options"];
  const Json fit = json_of("fit " + kBase + options)["rows"][0]["options"];
  for (const Json& found : {profile, sweep, fit}) {
    EXPECT_EQ(found["env"], "CUBLAS_WORKSPACE_CONFIG=:4096:2") << found;
    EXPECT_EQ(found["strict"], true);
    EXPECT_EQ(found["clip_norm"], 1.0);
    EXPECT_EQ(found["clip_value"], 2.0);
    EXPECT_EQ(found["zero_grad_to_none"], false);
    EXPECT_EQ(found["workspaces"], "none");
  }
}

TEST(Sweep, EveryOptionMayHaveAListAndNumbersARange) {
  const Json rows = json_of("sweep " + kBase + " --batch 1:3 --clip-norm 1,2 --steps 1")["rows"];
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[5]["options"]["batch"], 3);
  EXPECT_EQ(rows[5]["options"]["clip_norm"], 2.0);
  expect_refusal("sweep " + kBase + " --batch 3:1",
                 "--batch: '3:1' is no range; write 1:8, from 1 to 1073741824");
}

// The words of PyTorch are taken, and the nearest word is named.
TEST(Options, WordsOfTheFramework) {
  const Json options = Json::parse(
      run_program("profile " + kBase + " --precision bfloat16 --optimizer AdamW --mode no_grad --json -")
          .out)["options"];
  EXPECT_EQ(options["precision"], "bf16");
  EXPECT_EQ(options["optimizer"], "adamw");
  EXPECT_EQ(options["mode"], "no-grad");
  expect_refusal(
      "profile " + kBase + " --precision amp-b16",
      "--precision: 'amp-b16' is not one of: fp32, bf16, fp16, amp-bf16, amp-fp16; did you mean 'amp-bf16'?");
}

// What fit says fits is what profile says fits: the context counts in both.
TEST(Fit, TheVerdictIsThatOfProfile) {
  const std::string words = kResnet + " --device t4 --memory 3GiB ";
  const auto largest = json_of("fit " + words)["rows"][0]["largest"].get<int64_t>();
  const std::string batch = "profile " + words + "--batch ";
  EXPECT_EQ(run_program(batch + std::to_string(largest)).exit_code, 0);
  EXPECT_EQ(run_program(batch + std::to_string(largest + 1)).exit_code, 1);
  const auto without = json_of("fit " + words + "--context none")["rows"][0]["largest"].get<int64_t>();
  EXPECT_EQ(json_of("fit " + words + "--context 0")["rows"][0]["largest"], without);
  EXPECT_GT(without, largest) << "167 MiB are some images";
}

// torch.export gives a dynamic dimension the range from 2 on.
TEST(Fit, ExportsWithDynamicSizesBeginAtTwo) {
  const Json json =
      json_of("fit tests/data/programs/symbolic_exprs.pt2 --mode no-grad --steps 1 --optimizer none");
  EXPECT_EQ(json["rows"][0]["largest"], 64) << "the range of the export is 2 to 64";
}

// gpt2 has a table of 1024 positions.
TEST(Fit, PositionsEndWhereTheModelsTableEnds) {
  const std::string gpt2 = "tests/data/models/gpt2.pt2";
  expect_refusal_with("profile " + gpt2 + " --sequence 1025 --steps 1",
                      {"model.transformer.wpe.weight has 1024 positions, and the inputs have 1025"});
  EXPECT_EQ(run_program("profile " + gpt2 + " --sequence 1024 --steps 1").exit_code, 0);
  const Outcome outcome = run_program("fit " + gpt2 + " --find sequence --batch 1 --steps 1 --json -");
  EXPECT_EQ(Json::parse(outcome.out)["rows"][0]["largest"], 1024);
  EXPECT_NE(outcome.err.find("note: the search ended at what the export takes: "), std::string::npos)
      << outcome.err;
}

TEST(Fit, OptionsThatContradict) {
  expect_refusal(
      "fit " + kBase + " --find width",
      "--find: 'width' is no dimension of the inputs; there are batch, sequence, and with --lengths tokens");
  expect_refusal("fit " + kBase + " --batch 4", "--batch: is what fit looks for; --find sequence keeps it");
  expect_refusal("fit " + kBase + " --find sequence --sequence 4",
                 "--sequence: is what --find sequence looks for");
  expect_refusal("fit " + kBase + " --margin 100%", "--margin: 100% leaves nothing; a share is 5% or 0.05");
  expect_refusal("fit " + kBase + " --find sequence",
                 kBase + ": --sequence: no input has it: no tensor of integers of 2 dimensions or more");
}

TEST(Sweep, CsvHasALineForEachCombination) {
  const Outcome outcome =
      run_program("sweep " + kResnet +
                  " --batch 1,2 --optimizer none,sgd --steps 1 --checkpoint none,'model.layer?' --csv -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(
      "device,precision,optimizer,optimizer_impl,checkpoint,accumulate,sequence,batch,parameter_bytes,"
      "saved_bytes,peak_allocated_bytes,peak_requested_bytes,peak_reserved_bytes,flops_forward,flops_"
      "backward,"
      "flops_recompute,needed_bytes,fits,error\nh200,fp32,none,default,,1,,1,"))
      << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1 + 2 * 2 * 2);
}

// The table says what differs, against the first row, and which runs nothing beats.
TEST(Sweep, TheTableComparesWithTheFirstRow) {
  const Outcome outcome =
      run_program("sweep " + kResnet + " --device t4 --batch 2 --steps 1 --checkpoint none,'model.layer?'");
  EXPECT_TRUE(outcome.out.starts_with("resnet18: 2 of 2 fit; ")) << outcome.out;
  EXPECT_NE(outcome.out.find("\ncheckpoint    "), std::string::npos) << "only what differs has a column";
  EXPECT_EQ(outcome.out.find("adamw"), std::string::npos) << outcome.out;
  // Checkpointing computes the forward of the layers twice: both rows are of use.
  EXPECT_NE(outcome.out.find(" +"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("yes *\nmodel.layer?"), std::string::npos) << outcome.out;
}

// A run that does not fit has what it needs, not what was there when memory ran out.
TEST(Sweep, WhatDoesNotFitHasItsNeed) {
  const Json row = json_of("sweep " + kResnet + " --memory 1GiB --steps 1", 1)["rows"][0];
  EXPECT_FALSE(row["fits"].get<bool>());
  EXPECT_EQ(row["needed_bytes"].get<int64_t>(), reserved(kResnet + " --steps 1"));
  EXPECT_LT(row["peak_reserved_bytes"].get<int64_t>(), row["needed_bytes"].get<int64_t>());
}

TEST(Sweep, FiguresAreThoseOfProfile) {
  const Json json = json_of("sweep " + kResnet + " --batch 7 --steps 2");
  EXPECT_EQ(json["schema"], "metaprof.sweep");
  EXPECT_EQ(json["rows"][0]["peak_reserved_bytes"].get<int64_t>(),
            reserved(kResnet + " --batch 7 --steps 2"));
  EXPECT_TRUE(json["rows"][0]["fits"].get<bool>());
  EXPECT_TRUE(json["rows"][0]["error"].is_null());
}

// As jobs of a cluster's array would run it: appended, the shards' rows are those of one sweep, column by column.
TEST(Sweep, ShardsAreOneTable) {
  const std::string words = "sweep " + kBase + " --steps 1 --batch 1:5 --precision fp32,bf16 ";  // 10 rows
  const Json whole = json_of(words);
  const std::string whole_csv = run_program(words + "--csv -").out;
  for (const int count : {1, 3, 16}) {
    Json joined = whole;
    joined["rows"] = Json::array();
    std::string csv;
    for (int i = 1; i <= count; ++i) {
      const std::string shard = fmt::format("{} --shard {}/{}", words, i, count);
      const Json part = json_of(shard);
      for (const Json& row : part["rows"]) joined["rows"].push_back(row);
      const std::string lines = run_program(shard + " --csv -").out;
      csv += i == 1 ? lines : lines.substr(lines.find('\n') + 1);
    }
    EXPECT_EQ(joined, whole) << count << " shards";
    EXPECT_EQ(csv, whole_csv) << count << " shards";
  }
  EXPECT_EQ(json_of(words + "--shard 2/3")["rows"].size(), 3u) << "from 10·1/3 up to 10·2/3";
}

TEST(Sweep, AShardIsANumberOfACount) {
  for (const char* bad : {"0/3", "4/3", "3", "/3", "3/", "a/b", "1/2/3", "-1/3"})
    expect_refusal(fmt::format("sweep {} --shard {}", kBase, bad),
                   fmt::format("--shard {}: expected I/N with I from 1 to N, as 3/16", bad));
  expect_refusal_with("sweep " + kBase + " --shard 1/99999999999999999999", {"expected I/N"});
}

TEST(Sweep, WhatCannotBeRunHasAnErrorInItsRow) {
  const Json rows =
      json_of("sweep " + kBase + " --optimizer sgd,rprop --optimizer-impl fused --steps 1", 1)["rows"];
  EXPECT_TRUE(rows[0]["error"].is_null());
  EXPECT_EQ(rows[1]["error"], "optimizer 'rprop' has no implementation 'fused' on h200");
  EXPECT_TRUE(rows[1]["peak_reserved_bytes"].is_null());
}

TEST(Sweep, AWordThatIsNoneIsRefused) {
  expect_refusal_with("sweep " + kBase + " --optimizer sgd,best --steps 1",
                      {"--optimizer: 'best' is not one of: "});
}

TEST(Sweep, AllDevicesAreTheCardsWithTheMostMemoryFirst) {
  const Json all = json_of("sweep " + kBase + " --steps 1 --device all,cpu", 0);
  const Json listed = Json::parse(run_program("devices --json -").out);
  std::vector<std::string> expected, got;
  for (const Json& device : listed["devices"]) expected.push_back(device["name"]);
  for (const Json& row : all["rows"]) got.push_back(row["options"]["device"]);
  EXPECT_EQ(got, expected);  // which has the CPU last
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
  expect_refusal(
      "sweep no-such.pt2",
      "no-such.pt2: no such file, and no no-such.pt2 here or in the folders of METAPROF_MODELS (not set)");
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
  expect_refusal_with("profile tests/data/models/gpt2.pt2 --set input_ids=4x256",
                      {"--set left as they were: labels [", "--sequence"});
  expect_refusal(words + "y=4x4", kResnet + ": there is no input tensor 'y'; there are: x, labels");
  expect_refusal(words + "x=4x4", kResnet + ": input x has 4 dimensions, [32,3,224,224]; [4,4] does not fit");
  expect_refusal_with("profile " + kResnet + " --set x=7x3x224x224",
                      {"a number in the export does not follow the new sizes of the inputs: export the model "
                       "with dynamic_shapes"});
}

}  // namespace
}  // namespace metaprof
