// metaprof rent: which cards a model needs, from its name.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "program.h"

namespace metaprof {
namespace {

nlohmann::json rented(const std::string& words) {
  const Outcome outcome = run_program("rent " + words + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(Rent, ANameOfTheHubIsEnough) {
  const Outcome outcome = run_program("rent meta-llama/Llama-3.2-1B --device rtx4090,t4 --context 4k");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("full fine-tuning from ")) << outcome.out;
  for (const char* part :
       {"llama-3.2-1b: 1 235 814 400 parameters in bf16", "adapters r=8,targets=q_proj,v_proj",
        "a context of 4 096 tokens", "t4 *", "*: has no hardware for bf16; give --precision fp16."})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << '\n' << outcome.out;
}

TEST(Rent, TheJsonFollowsItsSchema) {
  const std::string file = testing::TempDir() + "rent.json";
  ASSERT_EQ(run_program("rent qwen3-0.6b --device t4,rtx4090 --json " + file).exit_code, 0);
  const int status = std::system(
      (METAPROF_PYTHON " tests/validate_json.py reports/schema/rent.schema.json " + file).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(status, 0);
}

// With the options that a method names, the largest batch fits, and one more does not.
TEST(Rent, EachFigureIsThatOfProfile) {
  const nlohmann::json report = rented("qwen3-0.6b --device rtx3060 --context 4096");
  const nlohmann::json& row = report["rows"][0];
  for (size_t i = 0; i < report["methods"].size(); ++i) {
    const nlohmann::json& method = report["methods"][i];
    ASSERT_TRUE(method["error"].is_null());
    const int64_t largest = row["methods"][i]["largest_batch"];
    int64_t reserved = 0;
    bool one_more_fits = true;
    for (const std::string command : method["commands"]) {
      const std::string words =
          command.substr(std::string("metaprof ").size()) + " --device rtx3060 --batch ";
      const Outcome outcome = run_program(words + std::to_string(largest) + " --json -");
      EXPECT_EQ(outcome.exit_code, 0) << words << largest;
      const auto profile = nlohmann::json::parse(outcome.out);
      reserved = std::max<int64_t>(reserved, profile["peak"]["reserved_bytes"]);
      one_more_fits = one_more_fits && run_program(words + std::to_string(largest + 1)).exit_code == 0;
    }
    EXPECT_FALSE(one_more_fits) << method["method"] << largest;
    EXPECT_GE(reserved, row["methods"][i]["peak_reserved_bytes"]) << method["method"];
  }
}

TEST(Rent, WhatDoesNotFitOneCardIsSharded) {
  const nlohmann::json report = rented("llama-3.1-8b --device a100");
  const nlohmann::json& full = report["methods"][1];
  ASSERT_TRUE(full["recomputed"]);
  const int64_t cards = report["rows"][0]["least_cards"];
  const int64_t available = report["rows"][0]["available_bytes"], allocated = full["peak_allocated_bytes"];
  EXPECT_GE(cards * available, allocated);
  EXPECT_EQ(rented("llama-3.1-70b --device a100")["rows"][0]["methods"][0]["largest_batch"], nullptr);
  EXPECT_GT(rented("llama-3.1-70b --device a100")["rows"][0]["least_cards"], 8);
}

TEST(Rent, AModelWithoutAdaptersOrGenerationSaysSo) {
  const Outcome outcome = run_program("rent resnet50 --device t4");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Note: generation is not built for this model\n"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("Note: lora is left out: "), std::string::npos) << outcome.out;
}

TEST(Rent, ADtypeThatNobodyNamedIsSaid) {
  const std::string note =
      "Note: the configuration names no dtype, so fp32 is taken; give --precision bf16 otherwise\n";
  EXPECT_NE(run_program("rent gpt2 --device t4").out.find(note), std::string::npos);
  EXPECT_EQ(run_program("rent gpt2 --device t4 --precision bf16").out.find(note), std::string::npos);
  EXPECT_EQ(run_program("rent qwen3-0.6b --device t4").out.find(note), std::string::npos);
}

TEST(Rent, NothingThatFitsIsAFinding) {
  const Outcome outcome = run_program("rent llama-3.1-70b --device t4");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("full fine-tuning on none of these cards"), std::string::npos) << outcome.out;
}

TEST(Rent, BadWordsAreNamed) {
  expect_refusal("rent gpt2 --context many",
                 "--context: 'many' is no number of tokens from 2 to 16777216, as 8192 or 32k");
  expect_refusal("rent gpt2 --context 1",
                 "--context: '1' is no number of tokens from 2 to 16777216, as 8192 or 32k");
  expect_refusal("rent gpt2 --context 99999999k",
                 "--context: '99999999k' is no number of tokens from 2 to 16777216, as 8192 or 32k");
  expect_refusal(
      "rent gpt2 --precision bf17",
      "--precision: 'bf17' is not one of: fp32, bf16, fp16, amp-bf16, amp-fp16; did you mean 'bf16'?");
  expect_refusal(
      "rent gpt2 --sequence 2000",
      "gpt2: transformer.wpe.weight has 1024 positions, and the inputs have 2000: the step would end with an "
      "index error");
  expect_refusal("rent tests/data/models/resnet18.pt2",
                 "rent: resnet18: is an export, of one size of inputs; give a Hugging Face config.json, its "
                 "folder or the "
                 "name of a model, or look with metaprof fit");
  EXPECT_NE(run_program("rent gpt2 --device t5").err.find("there is no device 't5'"), std::string::npos);
}

struct RecordedRow {
  std::string model, card, method;
  bool recomputed;
  int64_t context, batch, said;
  std::optional<int64_t> reserved;  // nothing: memory ran out
  bool one_more_ran;
};

std::vector<RecordedRow> recorded() {
  std::vector<RecordedRow> rows;
  std::istringstream file(read_file("tests/data/rent/recorded.csv"));
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream words(line);
    for (std::string cell; std::getline(words, cell, ',');) cells.push_back(cell);
    rows.push_back({cells[0], cells[1], cells[2], !cells[3].empty(), std::stoll(cells[4]),
                    std::stoll(cells[5]), std::stoll(cells[6]),
                    cells[7] == "out of memory" ? std::nullopt : std::optional(std::stoll(cells[7])),
                    cells[8] == "ran"});
  }
  return rows;
}

// The answer of a model on all cards on which it was run, and the row of a card in it.
nlohmann::json answer(const std::string& model, const std::vector<RecordedRow>& rows) {
  std::set<std::string> cards;
  for (const RecordedRow& row : rows)
    if (row.model == model) cards.insert(row.card);
  return rented(fmt::format("{} --framework 2.11 --device {}", model, fmt::join(cards, ",")));
}

nlohmann::json cell(const nlohmann::json& report, const RecordedRow& wanted) {
  for (const auto& row : report["rows"])
    for (const auto& cell : row["methods"])
      if (row["device"] == wanted.card && cell["method"] == wanted.method &&
          cell["recomputed"] == wanted.recomputed)
        return cell;
  return {};
}

// What transformers, peft and bitsandbytes did on emulated cards, with the batch that is said and one more
// (tools/compare/check_rent.py). docs/evidence/rent.md names the rows that differ, and why.
TEST(Rent, IsWhatProgramsDid) {
  const std::vector<RecordedRow> rows = recorded();
  std::map<std::string, nlohmann::json> reports;
  size_t right = 0, near = 0;
  for (const RecordedRow& row : rows) {
    SCOPED_TRACE(row.model + " " + row.card + " " + row.method + (row.recomputed ? " recomputed" : ""));
    if (!reports.contains(row.model)) reports[row.model] = answer(row.model, rows);
    EXPECT_EQ(reports[row.model]["context"], row.context);
    const nlohmann::json said = cell(reports[row.model], row);
    EXPECT_EQ(said["largest_batch"], row.batch);
    // Whether cuDNN is there to be asked decides the workspace of a picture's patches.
    EXPECT_NEAR(said["peak_reserved_bytes"], row.said, row.model.starts_with("vit") ? 4e6 : 0);
    right += row.reserved && !row.one_more_ran;
    near += row.reserved && std::llabs(row.said - *row.reserved) <= *row.reserved / 100;
  }
  EXPECT_GE(right, rows.size() * 85 / 100);  // the batch ran, and one more ran out of memory
  EXPECT_GE(near, rows.size() * 75 / 100);   // within 1 %
}

}  // namespace
}  // namespace metaprof
