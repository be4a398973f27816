#include "opcount/counts.h"

#include <gtest/gtest.h>

#include "meta/trace/text.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

Counts counts_of(std::string_view text, const Rates& rates = {}) { return count(parse_trace(text), rates); }

const OpCost& op_named(const Counts& counts, std::string_view name) {
  for (const OpCost& op : counts.by_op)
    if (op.op == name) return op;
  ADD_FAILURE() << "no operator " << name;
  static const OpCost kNone;
  return kNone;
}

class TwoLayers : public testing::Test {
 protected:
  const Counts counts = counts_of(read_file("tests/data/traces/two_layers.trace"));
};

TEST_F(TwoLayers, SumsByPhaseTheFirstStepOnly) {
  // forward: fc1 2·8·4·16 = 1024, fc2 2·8·16·2 = 512; the forward of step 1 does not count
  EXPECT_EQ(counts.total.counted.forward.count, 1024 + 512);
  // backward: fc2's input and weight 2·8·2·16 each, fc1's weight 2·4·8·16 (its input needs no gradient)
  EXPECT_EQ(counts.total.counted.backward.count, 512 + 512 + 1024);
  EXPECT_EQ(counts.total.counted.optimizer.count, 0);
  EXPECT_EQ(counts.total.all.forward.count, 1536 + 128);             // + relu
  EXPECT_EQ(counts.total.all.backward.count, 2048 + 16 + 16 + 128);  // + div, sum, threshold_backward
  EXPECT_EQ(counts.total.all.optimizer.count, 128);                  // add_
  EXPECT_EQ(counts.total.moved.forward.count, 896 + 1024 + 712);
}

TEST_F(TwoLayers, SumsByOperatorWithoutOverloads) {
  EXPECT_EQ(op_named(counts, "aten.mm").cost.counted.forward.count, 1024);
  EXPECT_EQ(op_named(counts, "aten.mm").cost.counted.backward.count, 2048);
  EXPECT_EQ(op_named(counts, "aten.mm").calls, 4);
  EXPECT_EQ(op_named(counts, "aten.sum").cost.all.backward.count, 16);
  for (const OpCost& op : counts.by_op) EXPECT_NE(op.op, "aten.linear") << "composite operators cost nothing";
}

TEST_F(TwoLayers, SumsByModuleWithWhatIsInsideIt) {
  EXPECT_EQ(counts.by_module.at("").counted.forward.count, 1536);
  EXPECT_EQ(counts.by_module.at("").counted.backward.count, 2048);
  EXPECT_EQ(counts.by_module.at("fc1").counted.forward.count, 1024);
  EXPECT_EQ(counts.by_module.at("fc1").counted.backward.count, 1024);
  EXPECT_EQ(counts.by_module.at("fc2").counted.backward.count, 1024);
  EXPECT_EQ(counts.by_module.at("").all.optimizer.count, 0) << "the optimizer belongs to no module";
}

TEST(Counts, AModuleInsideOthersCountsInEachOfThem) {
  const Counts counts = counts_of(
      "# phase forward step 0\n"
      "# enter a\n# enter a.b\n# enter a.b.c\n> aten::mm\n< counted=5\n# leave a.b.c\n> aten::mm\n< "
      "counted=2\n");
  EXPECT_EQ(counts.by_module.at("a.b.c").counted.forward.count, 5);
  EXPECT_EQ(counts.by_module.at("a.b").counted.forward.count, 7);
  EXPECT_EQ(counts.by_module.at("a").counted.forward.count, 7);
  EXPECT_EQ(counts.by_module.at("").counted.forward.count, 7);
}

TEST(Counts, AKernelsOwnCallsAreCoveredByItsOperator) {
  const Counts counts = counts_of(
      "# phase forward step 0\n"
      "> aten::convolution\n> aten::mm\n< counted=8 moved=3\n< counted=9 moved=4\n");
  EXPECT_EQ(counts.total.counted.forward.count, 9);
  EXPECT_EQ(counts.total.moved.forward.count, 4);
}

TEST(Counts, CallsInsideAnOperatorWithoutCostsCountThemselves) {
  const Counts counts = counts_of(
      "# phase forward step 0\n"
      "> aten::embedding_bag\n> aten::mm\n< counted=8 moved=3\n<\n");
  EXPECT_EQ(counts.total.counted.forward.count, 8);
  EXPECT_EQ(counts.total.moved.forward.count, 3);
}

TEST(Counts, RecomputationIsNotBackward) {
  const Counts counts = counts_of(
      "# phase backward step 0\n"
      "> aten::mm phase=recompute\n< counted=8\n> aten::mm\n< counted=2\n");
  EXPECT_EQ(counts.total.counted.recompute.count, 8);
  EXPECT_EQ(counts.total.counted.backward.count, 2);
}

TEST(Counts, AllMicroBatchesOfTheFirstStepCount) {
  const Counts counts = counts_of(
      "# phase forward step 0 micro 0\n> aten::mm\n< counted=3\n"
      "# phase forward step 0 micro 1\n> aten::mm\n< counted=3\n"
      "# phase forward step 1 micro 0\n> aten::mm\n< counted=3\n");
  EXPECT_EQ(counts.total.counted.forward.count, 6);
}

// Each call takes the longer of its two times: 10 FLOPs at 2/s and 10 bytes at 5/s are 5 s, 2 FLOPs and
// 10 bytes are 2 s.
TEST(Counts, TheRooflineTakesTheLongerTimeOfEachCall) {
  const Rates rates{.bytes_per_second = 5, .flops_f64 = 1, .flops_f32 = 2, .flops_f16 = 4};
  const Counts counts = counts_of(
      "+ 1 8 input\n# phase forward step 0\n"
      "> aten::mm f32[2]@1\n< counted=10 moved=10\n"
      "> aten::mm f32[2]@1\n< counted=2 moved=10\n"
      "# phase backward step 0\n"
      "> aten::mm bf16[2]@1\n< counted=10 moved=1\n"  // 10 / 4
      "> aten::mm f64[1]@1\n< counted=10 moved=1\n",  // 10 / 1
      rates);
  EXPECT_DOUBLE_EQ(counts.roofline.forward, 5 + 2);
  EXPECT_DOUBLE_EQ(counts.roofline.backward, 2.5 + 10);
  EXPECT_DOUBLE_EQ(counts.roofline.total(), 19.5);
}

// cuDNN computes f32 in TF32 unless told otherwise, cuBLAS does not.
TEST(Counts, TheRooflineKnowsWhichEngineComputes) {
  const std::string text =
      "+ 1 8 input\n# phase forward step 0\n"
      "> aten::convolution f32[2]@1 kernel=cudnn\n< counted=80 moved=1\n"
      "# phase backward step 0\n> aten::mm f32[2]@1\n< counted=80 moved=1\n"
      "# phase optimizer step 0\n> aten::mm bf16[2]@1\n< counted=80 moved=1\n";
  Rates rates{.bytes_per_second = 1e9, .flops_f32 = 2, .flops_f16 = 8, .flops_tf32 = 4};
  const Counts usual = counts_of(text, rates);
  EXPECT_DOUBLE_EQ(usual.roofline.forward, 80 / 4);
  EXPECT_DOUBLE_EQ(usual.roofline.backward, 80 / 2);
  EXPECT_DOUBLE_EQ(usual.roofline.optimizer, 80 / 8);
  rates.tf32_in_cudnn = false;  // torch.backends.cudnn.allow_tf32
  rates.tf32_products = true;   // torch.backends.cuda.matmul.allow_tf32
  const Counts other = counts_of(text, rates);
  EXPECT_DOUBLE_EQ(other.roofline.forward, 80 / 2);
  EXPECT_DOUBLE_EQ(other.roofline.backward, 80 / 4);
}

// Rules of opcount/expected_time.cpp, each for a call that it decides.
TEST(Counts, WhatACallIsExpectedToTake) {
  Rates rates{.bytes_per_second = 1e12,
              .flops_f32 = 1e12,
              .flops_f16 = 4e12,
              .flops_tf32 = 2e12,
              .multiprocessors = 4,
              .sm = 90};
  const auto expected = [&](const std::string& call) {
    return counts_of("# phase forward step 0\n> aten::" + call, rates).expected.forward;
  };
  // Launching a kernel takes longer than moving 8 bytes.
  EXPECT_DOUBLE_EQ(expected("relu f32[2]@0\n< moved=8\n"), 5e-6);
  // 9 GB at 90 % of 1 TB/s.
  EXPECT_DOUBLE_EQ(expected("relu f32[2]@0\n< moved=9000000000\n"), 1e-2);
  EXPECT_DOUBLE_EQ(expected("view f32[2]@0\n<\n"), 0) << "nothing is computed or moved";

  const std::string half = "+ 1 8 input\n> aten::relu f16[2]@1\n< moved=9000000000\n";
  const auto of_half = [&] { return counts_of("# phase forward step 0\n" + half, rates).expected.forward; };
  EXPECT_DOUBLE_EQ(of_half(), 1e-2);
  rates.loads_eight_bytes = true;  // until 2.7: 80 %
  EXPECT_DOUBLE_EQ(of_half(), 9e-3 / 0.8);
  EXPECT_DOUBLE_EQ(expected("relu f32[2]@0\n< moved=9000000000\n"), 1e-2) << "these load sixteen";
}

// 8 GFLOPs by each kernel, on an H100's architecture with 1 TFLOPS in f32, 2 in TF32 and 4 in f16.
TEST(Counts, WhatAKernelIsExpectedToTake) {
  const Rates rates{.bytes_per_second = 1e12,
                    .flops_f32 = 1e12,
                    .flops_f16 = 4e12,
                    .flops_tf32 = 2e12,
                    .multiprocessors = 4,
                    .sm = 90};
  const auto expected = [&](const std::string& dtype, const std::string& kernel, int sm = 90) {
    Rates of_card = rates;
    of_card.sm = sm;
    return counts_of("+ 1 8 input\n# phase forward step 0\n> aten::x " + dtype + "[2]@1 kernel=" + kernel +
                         "\n< " + dtype + "[256,256]@1 counted=8000000000\n",
                     of_card)
        .expected.forward;
  };
  EXPECT_DOUBLE_EQ(expected("f16", "other"), 2e-3 / 0.75) << "four tiles of 128 by 128, one for each";
  EXPECT_DOUBLE_EQ(expected("f32", "other"), 8e-3 / 0.75);
  EXPECT_DOUBLE_EQ(expected("f32", "cudnn"), 4e-3 / 0.75);
  EXPECT_DOUBLE_EQ(expected("f16", "attention"), 2e-3 / 0.35);
  EXPECT_DOUBLE_EQ(expected("f16", "attention", 80), 2e-3 / 0.6);
  // Two loads for a multiply-add, on lanes of f32: 128 of them have 32 units on an H100, 64 have 32 on an A100, 128 have
  // 16 on Ada.
  EXPECT_DOUBLE_EQ(expected("f16", "depthwise"), 8e-3 * 2 * 4);
  EXPECT_DOUBLE_EQ(expected("f32", "depthwise", 80), 8e-3 * 2 * 2);
  EXPECT_DOUBLE_EQ(expected("f32", "depthwise", 89), 8e-3 * 2 * 8);
}

TEST(Counts, IntensityIsFlopsPerByte) {
  EXPECT_DOUBLE_EQ(arithmetic_intensity({30}, {4}), 7.5);
  EXPECT_DOUBLE_EQ(arithmetic_intensity({30}, {0}), 0);
}

TEST(Counts, NamesOperatorsAsTheFrameworksCounterDoes) {
  EXPECT_EQ(op_packet_name("aten::addmm"), "aten.addmm");
  EXPECT_EQ(op_packet_name("aten::add_.Tensor"), "aten.add_");
  EXPECT_EQ(op_packet_name("mylib::custom.out"), "mylib.custom");
  EXPECT_EQ(op_packet_name("odd"), "odd");
}

}  // namespace
}  // namespace metaprof
