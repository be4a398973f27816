// The text of --checkpoint: what it says, which calls that are, and what is refused.

#include "step/checkpointed_modules.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "program/pt2/pt2.h"
#include "step/checkpoint_text.h"
#include "step/step.h"

namespace metaprof {
namespace {

const Program& gpt2() {
  static const Program kProgram = read_pt2("tests/data/models/gpt2.pt2");
  return kProgram;
}

const std::string kBlocks = "model.transformer.h.";

std::vector<RecomputeRegion> regions_of(const std::string& text) {
  return checkpointed_modules(gpt2(), text, false);
}

std::string refusal_of(const std::string& text) {
  try {
    regions_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CheckpointText, BracesSayWhatIsKeptAndWhatIsInside) {
  const std::vector<CheckpointItem> items =
      checkpoint_items("a.*{=mm:2,0 =_softmax} b.0..b.3{b.0{b.0.c} b.1..b.2} d{>host}");
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].first, "a.*");
  EXPECT_EQ(items[0].kept,
            (std::vector<KeptCalls>{{.op = "mm", .which = {0, 2}}, {.op = "_softmax", .which = {}}}));
  EXPECT_EQ(items[1].first, "b.0");
  EXPECT_EQ(items[1].last, "b.3");
  ASSERT_EQ(items[1].inside.size(), 2u);
  EXPECT_EQ(items[1].inside[0].inside.at(0).first, "b.0.c");
  EXPECT_EQ(items[1].inside[1].last, "b.2");
  EXPECT_TRUE(items[2].offload);
}

TEST(CheckpointText, RefusalsSayWhichWordIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a}", "--checkpoint: a '}' closes nothing"},
      {"a{", "--checkpoint: 'a{' is not closed with '}'"},
      {"{a}", "--checkpoint: '{' follows no module"},
      {"a{b}{c}", "--checkpoint: '{' follows no module"},
      {"=mm", "--checkpoint: '=mm' stands in the braces of no module"},
      {"a{=}", "--checkpoint: '=' names no operator"},
      {"a{=mm:}", "--checkpoint: '=mm:' is not =OPERATOR:N,N … with numbers of calls, from 0"},
      {"a{=mm:1,x}", "--checkpoint: '=mm:1,x' is not =OPERATOR:N,N … with numbers of calls, from 0"},
      {"a{>disk}", "--checkpoint: '>disk' is not '>host'"},
      {"a..", "--checkpoint: 'a..' is not first..last"},
      {"a{=mm b}", "--checkpoint: 'a' keeps results of operators, so nothing else can be said of it"},
      {"a{b{=mm}}",
       "--checkpoint: 'b' keeps results of operators inside a module that is computed again: they would be "
       "kept "
       "twice"}};
  for (const auto& [text, message] : cases) {
    try {
      checkpoint_items(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
    }
  }
}

TEST(CheckpointText, HasAnEnd) {
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += "a{";
  try {
    checkpoint_items(deep);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--checkpoint: more than 64 checkpoints inside each other");
  }
}

TEST(CheckpointedModules, SeveralInARowAreOneRegion) {
  const auto single = regions_of(kBlocks + "*");
  ASSERT_EQ(single.size(), 12u);
  const auto joined = regions_of(kBlocks + "2.." + kBlocks + "5");
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0].begin, single[2].begin);
  EXPECT_EQ(joined[0].end, single[5].end);
}

TEST(CheckpointedModules, WhatIsInsideLiesInside) {
  const auto regions = regions_of(kBlocks + "0.." + kBlocks + "3{" + kBlocks + "[0-1] " + kBlocks + "2.." +
                                  kBlocks + "3{" + kBlocks + "3}}");
  const auto single = regions_of(kBlocks + "*");
  ASSERT_EQ(regions.size(), 1u);
  ASSERT_EQ(regions[0].inside.size(), 3u);
  EXPECT_EQ(regions[0].inside[1], single[1]);
  EXPECT_EQ(regions[0].inside[2].begin, single[2].begin);
  EXPECT_EQ(regions[0].inside[2].inside, std::vector<RecomputeRegion>{single[3]});
}

TEST(CheckpointedModules, AreThoseThatThereAre) {
  EXPECT_EQ(refusal_of("model.h.0"),
            "--checkpoint: no module of gpt2 matches 'model.h.0'; its layers are 'model.transformer.h.*'");
  EXPECT_EQ(refusal_of(kBlocks + "0{model.h.0}"),
            "--checkpoint: no module of gpt2 matches 'model.h.0'; its layers are 'model.transformer.h.*'");
  EXPECT_EQ(refusal_of(kBlocks + "3.." + kBlocks + "1"),
            "--checkpoint: 'model.transformer.h.3..model.transformer.h.1': gpt2 does not call the last "
            "module after "
            "the first");
}

// Calls that a step makes again, by operator; all its calls of forward and backward are the same whatever is
// computed again.
std::map<std::string, int> computed_again(const std::string& checkpoint) {
  StepOptions options;
  options.optimizer = "none";
  options.steps = 1;
  options.checkpoint = checkpoint;
  const Trace trace = run_steps(gpt2(), platform_named("h200"), options);
  std::map<std::string, int> calls;
  for (const CallRecord& call : trace.calls)
    if (call.phase == Phase::recompute) ++calls[std::string(trace.text(call.op))];
  return calls;
}

// A block has four addmm; the dropout after the last one keeps its mask, so all are computed again.
TEST(CheckpointedModules, KeptResultsAreNotComputedAgain) {
  EXPECT_EQ(computed_again(kBlocks + "0").at("aten::addmm"), 4);
  auto kept = computed_again(kBlocks + "0{=addmm:0,2}");
  EXPECT_EQ(kept.at("aten::addmm"), 2);
  kept = computed_again(kBlocks + "0{=addmm}");
  EXPECT_EQ(kept.count("aten::addmm"), 0u);
  EXPECT_GT(kept.at("aten::native_layer_norm"), 0);
}

// The outer region computes its two blocks again, the inner one its own once more.
TEST(CheckpointedModules, NestedRegionsAreComputedAgainTwice) {
  EXPECT_EQ(computed_again(kBlocks + "0.." + kBlocks + "1").at("aten::addmm"), 4 + 4);
  EXPECT_EQ(computed_again(kBlocks + "0.." + kBlocks + "1{" + kBlocks + "0}").at("aten::addmm"), 4 + 4 + 4);
}

TEST(CheckpointedModules, WhatWaitsOnTheHostIsNotComputedAgain) {
  EXPECT_EQ(computed_again(kBlocks + "0{>host}"), (std::map<std::string, int>()));
}

TEST(CheckpointedModules, KeepResultsOfOperatorsThatThereAre) {
  try {
    computed_again(kBlocks + "0{=adddmm}");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--checkpoint: there is no operator 'adddmm' whose results could be kept");
  }
}

}  // namespace
}  // namespace metaprof
