// Which implementation of attention ran, and why not one that comes before it: aten/src/ATen/native/transformers/cuda/
// sdp_utils.cpp has the order and the conditions.

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kGpt2 = "tests/data/models/gpt2.pt2 --steps 1 --batch 1 ",
                  kLlama = "tests/data/models/llama_3_2_1b.pt2 --steps 1 ";

Json attention_of(const std::string& words) {
  return Json::parse(run_program("profile " + words + " --json -").out)["attention"];
}

// "flash: …; memory-efficient: …"
std::string refusals_of(const Json& row) {
  std::string text;
  for (const Json& refused : row["refused"])
    text += (text.empty() ? "" : "; ") + refused["implementation"].get<std::string>() + ": " +
            refused["why"].get<std::string>();
  return text;
}

void expect_one(const std::string& words, const std::string& implementation, const std::string& refusals) {
  const Json rows = attention_of(words);
  ASSERT_EQ(rows.size(), 1u) << words << rows;
  EXPECT_EQ(rows[0]["implementation"], implementation) << words;
  EXPECT_EQ(refusals_of(rows[0]), refusals) << words;
}

TEST(Attention, TheDtypeDecides) {
  expect_one(kGpt2 + "--device a100", "memory-efficient", "flash: it takes fp16 and bf16 alone");
  expect_one(kGpt2 + "--device a100 --precision amp-bf16", "flash", "");
  expect_one(kGpt2 + "--device h100", "memory-efficient",
             "cuDNN: it takes fp16 and bf16 alone; flash: it takes fp16 and bf16 alone");
}

TEST(Attention, TheDeviceDecides) {
  expect_one(kGpt2 + "--device t4 --precision amp-fp16", "memory-efficient",
             "flash: it needs another compute capability");
  expect_one(
      kGpt2 + "--device t4 --precision amp-bf16", "math",
      "flash: it needs another compute capability; memory-efficient: bf16 needs compute capability 8.0");
}

// 32 heads of queries and 8 of keys: only flash has grouped heads.
TEST(Attention, GroupedHeadsDecide) {
  expect_one(kLlama + "--device a100", "math",
             "flash: it takes fp16 and bf16 alone; memory-efficient: keys have fewer heads than queries "
             "(enable_gqa)");
}

TEST(Attention, TheReportFoldsLayers) {
  const Outcome outcome = run_program("profile " + kGpt2 + "--device a100");
  EXPECT_NE(
      outcome.out.find("\nAttention: which implementation ran, and why not another\n"
                       "  12 × model.transformer.h.*.attn: memory-efficient (query f32[1,12,512,64], key "
                       "f32[1,12,512,64]); not flash: it takes fp16 and bf16 alone\n"),
      std::string::npos)
      << outcome.out;
  const Json rows = attention_of(kGpt2 + "--device a100");
  EXPECT_EQ(rows[0]["calls"], 12);
  EXPECT_EQ(rows[0]["modules"].size(), 12u);
}

// A run that is kept says the same.
TEST(Attention, ATraceKeepsTheChoice) {
  const std::string file = testing::TempDir() + "metaprof_attention_" + std::to_string(getpid()) + ".trace";
  const Json before = attention_of(kGpt2 + "--device a100 --write-trace " + file);
  EXPECT_EQ(attention_of(file + " --device a100"), before);
  std::remove(file.c_str());
}

TEST(Attention, NoChoiceIsNoRow) {
  EXPECT_TRUE(attention_of("tests/data/models/resnet18.pt2 --steps 1").empty());
}

}  // namespace
}  // namespace metaprof
