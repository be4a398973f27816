// --lengths: a whole epoch of batches of different lengths, on the command line.

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "program.h"

namespace metaprof {
namespace {

constexpr const char* kOptions =
    " gpt2 --device l40s --framework 2.11 --lengths tests/data/lengths/lengths.txt";

TEST(Lengths, TheFirstLineJudgesTheWholeEpoch) {
  const Outcome fits = run_program(std::string("profile") + kOptions + " --batch 8 --context none");
  EXPECT_EQ(fits.exit_code, 0);
  EXPECT_TRUE(fits.out.starts_with("FITS l40s: needs 21.8 GiB of 44.4 GiB")) << fits.out;
  EXPECT_NE(fits.out.find("200 samples in 25 batches, 25 steps; 24 different shapes"), std::string::npos)
      << fits.out;
  const Outcome less =
      run_program(std::string("profile") + kOptions + " --batch 8 --context none --memory 14GiB");
  EXPECT_EQ(less.exit_code, 1);
  EXPECT_TRUE(less.out.starts_with("DOES NOT FIT l40s: needs 21.8 GiB of 14.0 GiB")) << less.out;
  EXPECT_NE(less.out.find(
                "\nOut of memory in step 7 of 25, backward, with a batch of 8 x 971 tokens: it asks for "),
            std::string::npos)
      << less.out;
}

TEST(Lengths, TheJsonHasAllOfIt) {
  const std::string file = testing::TempDir() + "lengths.json";
  ASSERT_EQ(
      run_program(std::string("profile") + kOptions + " --batch 8 --memory 14GiB --json " + file).exit_code,
      1);
  const auto json = nlohmann::json::parse(read_file(file))["lengths"];
  EXPECT_EQ(json["run"]["out_of_memory"]["batch"]["tokens"], 971);
  EXPECT_EQ(json["without_limit"]["steps"], 25);
  EXPECT_EQ(json["changes"].size(), 4U);
  const int status = std::system(
      (METAPROF_PYTHON " tests/validate_json.py reports/schema/profile.schema.json " + file).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(status, 0);
}

// The largest batch runs the epoch, and one more sample in it does not.
TEST(Lengths, FitFindsTheLargestBatchThatRunsAll) {
  const Outcome found = run_program(std::string("fit") + kOptions + " --json -");
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const int64_t largest = nlohmann::json::parse(found.out)["rows"][0]["largest"];
  for (const int64_t more : {0, 1}) {
    const std::string batch = " --batch " + std::to_string(largest + more);
    EXPECT_EQ(run_program(std::string("profile") + kOptions + batch).exit_code, more) << batch;
  }
}

TEST(Lengths, FitFindsATokenBudget) {
  const Outcome found = run_program(std::string("fit") + kOptions + " --find tokens --json -");
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const auto row = nlohmann::json::parse(found.out)["rows"][0];
  const int64_t largest = row["largest"];
  const Outcome it =
      run_program(std::string("profile") + kOptions + " --json - --max-tokens " + std::to_string(largest));
  EXPECT_EQ(it.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(it.out)["lengths"]["run"]["peak_reserved_bytes"]["largest"],
            row["peak_reserved_bytes"]);
  EXPECT_EQ(run_program(std::string("fit") + kOptions + " --find tokens --memory 2GiB").exit_code, 1);
}

TEST(Lengths, ASweepHasMemoryOfTheWholeEpoch) {
  const Outcome swept = run_program(std::string("sweep") + kOptions + " --batch 4,8 --json -");
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  const auto rows = nlohmann::json::parse(swept.out)["rows"];
  EXPECT_EQ(rows[0]["peak_reserved_bytes"], 11324620800);  // tests/data/lengths/recorded.csv
  EXPECT_EQ(rows[1]["peak_reserved_bytes"], 23353884672);
}

TEST(Lengths, WhatCannotBeRunIsRefused) {
  expect_refusal("profile gpt2 --lengths nofile.txt", "--lengths: nofile.txt: no such file");
  expect_refusal(
      "profile gpt2 --lengths 0",
      "--lengths: line 1: '0' is no length (812), no length and how often it comes (512:4000), and no "
      "batch (8x512)");
  expect_refusal("profile gpt2 --lengths 5,8x4",
                 "--lengths: line 1: '8x4': lengths, counts of lengths and batches cannot stand in one list");
  expect_refusal("profile gpt2 --lengths ,",
                 "--lengths: there is no length in it; write the tokens of each sample, one a line");
  expect_refusal("profile gpt2 --lengths 10:9000000,20:9000000",
                 "--lengths: there are more than 10000000 samples; a part of the epoch says the same");
  expect_refusal(
      "profile gpt2 --lengths 2000",
      "gpt2: transformer.wpe.weight has 1024 positions, and the inputs have 2000: the step would end "
      "with an index error");
  expect_refusal("profile resnet18 --lengths 77",
                 "--lengths: the model has no input with 77 positions: it takes no sequences");
  expect_refusal(
      "profile tests/data/captured/encoder.mp --lengths 5",
      "--lengths: a captured program has batches of its own; give the model's export or configuration");
  expect_refusal("profile gpt2 --lengths 4 --accumulate 2",
                 "--lengths: makes 1 batches, fewer than the 2 of one step (--accumulate)");
  expect_refusal("profile gpt2 --lengths 500 --max-tokens 100",
                 "--max-tokens: a sample has 500 tokens, more than 100");
  expect_refusal("profile gpt2 --lengths 8x100 --bucket 4",
                 "--bucket makes batches of samples, and --lengths has batches already");
  expect_refusal("profile gpt2 --lengths 8x100 --max-tokens 400",
                 "--max-tokens makes batches of samples, and --lengths has batches already");
}

TEST(Lengths, OptionsThatSayAnotherThingAreRefused) {
  expect_refusal("profile gpt2 --lengths 5 --steps 4",
                 "--steps: --lengths says how many there are; leave one of them out");
  expect_refusal("profile gpt2 --lengths 5,6 --sequence 9",
                 "--sequence: the lengths are those of --lengths; leave one of them out");
  expect_refusal(
      "profile gpt2 --lengths 9 --execution graph",
      "--lengths: --execution graph keeps a plan for each shape, which is not followed; leave it out");
  for (const char* option : {"--bucket", "--max-tokens", "--empty-cache-every"})
    expect_refusal(std::string("profile gpt2 --steps 2 ") + option + " 3",
                   std::string(option) + " needs --lengths");
  expect_refusal("fit gpt2 --find tokens", "--find tokens needs --lengths, the samples that share them");
  expect_refusal(
      "fit gpt2 --lengths 5x5",
      "--lengths: batches are given as they are; fit looks for their size, so give lengths of samples");
  expect_refusal("fit gpt2 --lengths 5 --find sequence",
                 "--find sequence: the lengths are those of --lengths");
  expect_refusal("fit gpt2 --lengths 5 --plan",
                 "--plan: is made for one batch, not for --lengths; leave one of them out");
  expect_refusal(
      "fit gpt2 --lengths 5 --max-tokens 9",
      "--max-tokens: says how large batches are; leave it out, and give --find tokens to look for it");
}

}  // namespace
}  // namespace metaprof
