// One model through both doors: exported by the framework, and built from its configuration. Every figure of every
// phase is the same. Sizes are those of the export.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "estimate/estimate.h"

namespace metaprof {
namespace {

struct Case {
  std::string name;
  int64_t batch;
  std::optional<int64_t> sequence;
  std::string layers;  ///< that --checkpoint names
};

const Case kCases[] = {
    {"bert_base", 8, 128, "bert.encoder.layer.*"}, {"clip_vit_b_32", 16, 77, ""},
    {"gemma3_270m", 1, 256, "model.layers.*"},     {"gpt2", 4, 512, "transformer.h.*"},
    {"llama_3_1_8b", 1, 512, "model.layers.*"},    {"llama_3_2_1b", 1, 1024, "model.layers.*"},
    {"qwen3_0_6b", 1, 512, "model.layers.*"},      {"t5_small", 8, 128, ""},
    {"tiny_llama", 4, 256, "model.layers.*"},      {"whisper_tiny", 4, 64, "model.encoder.layers.*"},
    {"vit_hf_base", 16, {}, "vit.layers.*"}};

class BothDoors : public testing::TestWithParam<Case> {
 protected:
  // The export's modules have the prefix of the wrapper that computes the loss.
  void expect_equal(const StepOptions& step, const std::string& checkpoint = "") {
    RunOptions options;
    options.framework = "2.11";  // a configuration names no version
    options.step = step;
    options.memory = "100TB";
    options.workspaces = "none";
    if (!checkpoint.empty()) options.step.checkpoint = "model." + checkpoint;
    const ProfileReport exported =
        estimate(read_model("tests/data/models/" + GetParam().name + ".pt2"), options).report;
    options.step.checkpoint = checkpoint;
    options.batch = static_cast<int>(GetParam().batch);
    if (GetParam().sequence) options.sequence = static_cast<int>(*GetParam().sequence);
    const Model model = read_model("tests/data/configs/exports/" + GetParam().name + ".json");
    compare(exported, estimate(model, options).report);
  }

  static void compare(const ProfileReport& exported, const ProfileReport& built) {
    const MemoryProfile &a = exported.memory, &b = built.memory;
    EXPECT_EQ(a.parameters.all.count, b.parameters.all.count);
    EXPECT_EQ(a.parameters.all.bytes, b.parameters.all.bytes);
    EXPECT_EQ(a.parameters.tied.size(), b.parameters.tied.size());
    EXPECT_EQ(a.saved.count, b.saved.count);
    EXPECT_EQ(a.saved.bytes, b.saved.bytes);
    const auto &flops = exported.counts.total.counted, &own = built.counts.total.counted;
    EXPECT_EQ(flops.forward.count, own.forward.count);
    EXPECT_EQ(flops.backward.count, own.backward.count);
    EXPECT_EQ(flops.recompute.count, own.recompute.count);
    ASSERT_EQ(a.phases.rows.size(), b.phases.rows.size());
    for (size_t i = 0; i < a.phases.rows.size(); ++i)
      for (const auto number : kNumbers) {
        const AllocatorNumber &one = a.phases.rows[i].numbers.*number,
                              &other = b.phases.rows[i].numbers.*number;
        EXPECT_EQ(one.current, other.current) << "phase " << i;
        EXPECT_EQ(one.peak, other.peak) << "phase " << i;
      }
  }

  static constexpr AllocatorNumber AllocatorNumbers::*kNumbers[] = {
      &AllocatorNumbers::allocated_bytes, &AllocatorNumbers::requested_bytes, &AllocatorNumbers::active_bytes,
      &AllocatorNumbers::reserved_bytes,  &AllocatorNumbers::allocation,      &AllocatorNumbers::segment};
};

StepOptions with(Precision precision) {
  StepOptions options;
  options.precision = precision;
  return options;
}

TEST_P(BothDoors, TakeTheSameInFullPrecision) { expect_equal({}); }
TEST_P(BothDoors, TakeTheSameUnderAutocast) { expect_equal(with(Precision::amp_bf16)); }
TEST_P(BothDoors, TakeTheSameInInference) {
  StepOptions options;
  options.mode = Mode::inference;
  expect_equal(options);
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, BothDoors, testing::ValuesIn(kCases), name_of);

std::vector<Case> cases_where(bool (*holds)(const Case&)) {
  std::vector<Case> cases;
  std::ranges::copy_if(kCases, std::back_inserter(cases), holds);
  return cases;
}

// T5's norms branch on the dtype, and its export has the branch of fp32 alone.
class BothDoorsInSixteenBits : public BothDoors {};
TEST_P(BothDoorsInSixteenBits, TakeTheSame) { expect_equal(with(Precision::bf16)); }
INSTANTIATE_TEST_SUITE_P(All, BothDoorsInSixteenBits, testing::ValuesIn(cases_where([](const Case& one) {
                           return std::string(one.name) != "t5_small";
                         })),
                         name_of);

// Those with layers that can be computed again.
class BothDoorsWithCheckpoints : public BothDoors {};
TEST_P(BothDoorsWithCheckpoints, TakeTheSame) { expect_equal({}, GetParam().layers); }
INSTANTIATE_TEST_SUITE_P(All, BothDoorsWithCheckpoints,
                         testing::ValuesIn(cases_where([](const Case& one) { return !one.layers.empty(); })),
                         name_of);

}  // namespace
}  // namespace metaprof
