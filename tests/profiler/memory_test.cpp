// The figures of tests/data/traces/two_layers.trace, whose bytes can be followed by hand. Live bytes on the
// device after each change:
//   setup      256 384 392 400 528                    (the 64 bytes on the host do not count)
//   forward    1040 1552 1040 2064 2128 2132 2068
//   backward   2072 2136 2132 2644 2772 2780 2716 3228 2716 2204 2460 1948
//   zero_grad  1692 1564 1556
//   forward    2068
#include <gtest/gtest.h>

#include "meta/allocator/exact_allocator.h"
#include "meta/trace/text.h"
#include "profiler/profile.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

int64_t of(const BytesByCategory& bytes, Category category) {
  return bytes[static_cast<int>(category)].count;
}

class TwoLayers : public testing::Test {
 protected:
  const Trace trace = parse_trace(read_file("tests/data/traces/two_layers.trace"), "two_layers.trace");
  ExactAllocator allocator;
  const MemoryProfile profile = profile_memory(trace, kFirstGpu, allocator);

  const ModuleRow& module(std::string_view path) {
    for (const ModuleRow& row : profile.modules)
      if (row.path == path) return row;
    ADD_FAILURE() << "no module " << path;
    return profile.modules[0];
  }
};

TEST_F(TwoLayers, TheTimelineFollowsEveryChange) {
  std::vector<int64_t> totals;
  for (const Sample& sample : timeline(trace, kFirstGpu)) {
    int64_t total = 0;
    for (const Bytes bytes : sample.by_category) total += bytes.count;
    if (totals.empty() || totals.back() != total) totals.push_back(total);
  }
  EXPECT_EQ(totals, (std::vector<int64_t>{256,  384,  392,  400,  528,  1040, 1552, 1040, 2064, 2128,
                                          2132, 2068, 2072, 2136, 2132, 2644, 2772, 2780, 2716, 3228,
                                          2716, 2204, 2460, 1948, 1692, 1564, 1556, 2068}));
}

TEST_F(TwoLayers, TheHostHasATimelineOfItsOwn) {
  const std::vector<Sample> samples = timeline(trace, kHost);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(of(samples[0].by_category, Category::input), 64);
}

TEST_F(TwoLayers, ThePeakNamesItsPlaceAndWhatIsAlive) {
  const PeakMoment& peak = profile.peak;
  EXPECT_EQ(peak.bytes.count, 3228);
  EXPECT_EQ(peak.part.phase, Phase::backward);
  EXPECT_EQ(peak.part.step, 0u);
  EXPECT_EQ(peak.op, "aten::threshold_backward");
  EXPECT_EQ(peak.module, "act");
  EXPECT_EQ(of(peak.by_category, Category::parameter), 256 + 128 + 8);
  EXPECT_EQ(of(peak.by_category, Category::buffer), 8);
  EXPECT_EQ(of(peak.by_category, Category::input), 128);
  EXPECT_EQ(of(peak.by_category, Category::activation), 512);           // 8: kept by relu and addmm
  EXPECT_EQ(of(peak.by_category, Category::temporary), 4 + 512 + 512);  // 11 (the loss), 14, 17: kept by none
  EXPECT_EQ(of(peak.by_category, Category::gradient), 128 + 8);         // 15, 16: .grad by now
  EXPECT_EQ(of(peak.by_category, Category::workspace), 1024);
  int64_t sum = 0;
  for (const Bytes bytes : peak.by_category) sum += bytes.count;
  EXPECT_EQ(sum, peak.bytes.count);
}

TEST_F(TwoLayers, TheLargestStoragesSayWhatTheyAre) {
  const auto& largest = profile.peak.largest;
  ASSERT_GE(largest.size(), 4u);
  EXPECT_EQ(largest[0].bytes.count, 1024);
  EXPECT_EQ(largest[0].name, "cuBLAS workspace");
  EXPECT_FALSE(largest[0].shape) << "no tensor of it was seen";
  EXPECT_EQ(largest[0].op, "aten::addmm");
  EXPECT_EQ(largest[1].bytes.count, 512);
  EXPECT_EQ(largest[1].category, Category::activation);
  EXPECT_EQ(to_string(SizesView(*largest[1].shape)), "[8,16]");
  EXPECT_EQ(largest[1].op, "aten::relu");
  EXPECT_EQ(largest[1].module, "act");
  EXPECT_EQ(largest[2].op, "aten::mm");
  EXPECT_EQ(largest[2].module, "fc2");
  EXPECT_EQ(largest[3].op, "aten::threshold_backward");
}

TEST_F(TwoLayers, KeptStoragesCountOnceUnderTheNodeNearestToTheLoss) {
  EXPECT_EQ(profile.saved.count, 2);
  EXPECT_EQ(profile.saved.bytes.count, 512 + 128);
  ASSERT_EQ(profile.saved.by_node.size(), 2u);
  EXPECT_EQ(profile.saved.by_node[0].node, "AddmmBackward0");  // and not ReluBackward0, which keeps it, too
  EXPECT_EQ(profile.saved.by_node[0].bytes.count, 512);
  EXPECT_EQ(profile.saved.by_node[1].node, "MmBackward0");
  EXPECT_EQ(profile.saved.by_node[1].count, 1);
  EXPECT_EQ(profile.saved.by_node[1].bytes.count, 128);
}

TEST_F(TwoLayers, ParametersCountOnceAndInEveryModuleThatHasThem) {
  const Parameters& parameters = profile.parameters;
  EXPECT_EQ(parameters.all.count, 64 + 32 + 2);
  EXPECT_EQ(parameters.all.bytes.count, 392);
  EXPECT_EQ(parameters.all.tensors, 3);
  EXPECT_EQ(parameters.trainable.count, 98);
  EXPECT_EQ(parameters.buffers.count, 1);
  EXPECT_EQ(parameters.buffers.bytes.count, 8);
  ASSERT_EQ(parameters.tied.size(), 1u);
  EXPECT_EQ(parameters.tied[0], (std::vector<std::string>{"fc2.weight", "head.weight"}));
  EXPECT_EQ(parameters.by_module.at(""), 98);
  EXPECT_EQ(parameters.by_module.at("fc1"), 64);
  EXPECT_EQ(parameters.by_module.at("fc2"), 34);
  EXPECT_EQ(parameters.by_module.at("head"), 32) << "the tied weight is head's, too";
}

TEST_F(TwoLayers, ModulesAreATreeInTheOrderOfTheirForwards) {
  std::vector<std::string> paths;
  for (const ModuleRow& row : profile.modules) paths.push_back(row.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"", "fc1", "act", "fc2", "head"}));
  EXPECT_EQ(module("").depth, 0);
  EXPECT_EQ(module("fc2").depth, 1);
}

TEST_F(TwoLayers, ForwardFiguresOfModules) {
  EXPECT_EQ(module("fc1").forward_out.count, 512);
  EXPECT_EQ(module("fc1").forward_tmp.count, 0);
  EXPECT_EQ(module("act").forward_out.count, 512);
  EXPECT_EQ(module("fc2").forward_out.count, 64) << "the workspace stays, but is no result";
  // The root: born within are 7 8 9 10 11; 512 + 1024 + 64 + 4 = 1604 at most, then 10 goes.
  EXPECT_EQ(module("").forward_tmp.count, 64);
  EXPECT_EQ(module("").forward_out.count, 4);
}

TEST_F(TwoLayers, BackwardFiguresOfModules) {
  EXPECT_EQ(module("fc2").backward_out.count, 512 + 128 + 8);  // of its input, weight, bias
  EXPECT_EQ(module("fc2").backward_tmp.count, 0);
  EXPECT_EQ(module("act").backward_out.count, 512);
  EXPECT_EQ(module("fc1").backward_out.count, 256);
  // The root: 14 15 16 and 17 are 1160 together; at the end 15 16 18 are 392.
  EXPECT_EQ(module("").backward_out.count, 128 + 8 + 256);
  EXPECT_EQ(module("").backward_tmp.count, 1160 - 392);
}

TEST_F(TwoLayers, SavedBytesOfModulesSumToTheTotal) {
  EXPECT_EQ(module("fc1").saved.count, 128);
  EXPECT_EQ(module("act").saved.count, 0);
  EXPECT_EQ(module("fc2").saved.count, 512);
  EXPECT_EQ(module("").saved.count, profile.saved.bytes.count);
}

TEST_F(TwoLayers, PhasesHaveTheirEndAndTheirPeak) {
  struct Expected {
    Phase phase;
    uint32_t step;
    int64_t current, peak;
  };
  const Expected expected[] = {{Phase::setup, 0, 528, 528},       {Phase::forward, 0, 2068, 2132},
                               {Phase::backward, 0, 1948, 3228},  {Phase::optimizer, 0, 1948, 1948},
                               {Phase::zero_grad, 0, 1556, 1948}, {Phase::forward, 1, 2068, 2068}};
  ASSERT_EQ(profile.phases.rows.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    const PhaseRow& row = profile.phases.rows[i];
    EXPECT_EQ(row.part.phase, expected[i].phase) << i;
    EXPECT_EQ(row.part.step, expected[i].step) << i;
    EXPECT_EQ(row.numbers.requested_bytes.current, expected[i].current) << i;
    EXPECT_EQ(row.numbers.requested_bytes.peak, expected[i].peak) << i;
  }
  EXPECT_EQ(profile.phases.peak.allocated_bytes.peak, 3228);
  EXPECT_EQ(profile.phases.peak.requested_bytes.peak, profile.peak.bytes.count);
}

TEST_F(TwoLayers, UnknownOperatorsHaveTheirShare) {
  ASSERT_EQ(profile.unmodelled.size(), 1u);
  EXPECT_EQ(profile.unmodelled[0].op, "mylib::mean");
  EXPECT_EQ(profile.unmodelled[0].calls, 1);
  EXPECT_EQ(profile.unmodelled[0].module, "");
  // New results of step 0: 512 512 64 4 forward, 64 512 128 8 512 256 backward; expand and add_ make none.
  EXPECT_DOUBLE_EQ(profile.unmodelled[0].share_of_output_bytes, 4.0 / 2572);
}

MemoryProfile profile_of(std::string_view text) {
  ExactAllocator allocator;
  return profile_memory(parse_trace(text), kFirstGpu, allocator);
}

TEST(MemoryProfile, AnEmptyTraceHasNothing) {
  const MemoryProfile profile = profile_of("");
  EXPECT_EQ(profile.peak.bytes.count, 0);
  EXPECT_TRUE(profile.peak.largest.empty());
  EXPECT_TRUE(profile.phases.rows.empty());
  EXPECT_EQ(profile.modules.size(), 1u) << "the root";
}

TEST(MemoryProfile, RecomputationBelongsToItsBackward) {
  const MemoryProfile profile = profile_of(
      "# phase forward step 0 micro 1\n# phase backward step 0 micro 1\n+ 1 8 temporary\n"
      "# phase recompute step 0 micro 1\n+ 2 16 activation\n- 2\n# phase backward step 0 micro 1\n- 1\n");
  ASSERT_EQ(profile.phases.rows.size(), 2u);
  EXPECT_EQ(profile.phases.rows[1].numbers.requested_bytes.peak, 24);
  EXPECT_EQ(profile.phases.rows[1].part.micro, 1);
}

TEST(MemoryProfile, CastsThatAutocastKeepsAreNoResults) {
  const MemoryProfile profile = profile_of(
      "# phase forward step 0\n# enter\n# enter fc\n+ 1 8 cached_copy\n> aten::mm\n+ 2 4 activation\n< "
      "f16[2]@2\n"
      "# leave fc\n> aten::mm f16[2]@1 f16[2]@2\n<\n# leave\n");
  EXPECT_EQ(profile.modules[1].path, "fc");
  EXPECT_EQ(profile.modules[1].forward_out.count, 4);
}

// Max pooling makes indices beside its result; only the result is read by the next operator.
TEST(MemoryProfile, ResultsAreWhatLaterOperatorsRead) {
  const MemoryProfile profile = profile_of(
      "# phase forward step 0\n# enter\n# enter pool\n> aten::max_pool2d_with_indices\n+ 1 8 activation\n"
      "+ 2 16 activation\n< f32[2]@1 i64[2]@2\n# leave pool\n> aten::sum f32[2]@1\n+ 3 4 activation\n< "
      "f32[]@3\n"
      "# leave\n");
  EXPECT_EQ(profile.modules[1].path, "pool");
  EXPECT_EQ(profile.modules[1].forward_out.count, 8);
  EXPECT_EQ(profile.modules[0].forward_out.count, 4)
      << "the root: nobody reads the sum, which is its last result";
}

TEST(MemoryProfile, AModuleThatIsCalledTwiceSumsItsResults) {
  const MemoryProfile profile = profile_of(
      "# phase forward step 0\n"
      "# enter a\n> aten::x\n+ 1 8 temporary\n- 1\n+ 2 4 activation\n< f32[1]@2\n# leave a\n"
      "# enter a\n> aten::x\n+ 3 6 temporary\n- 3\n+ 4 4 activation\n< f32[1]@4\n# leave a\n");
  EXPECT_EQ(profile.modules[1].forward_out.count, 4 + 4);
  EXPECT_EQ(profile.modules[1].forward_tmp.count, 8 - 4) << "the first: 8 at most, 4 at its end";
}

TEST(MemoryProfile, AListThatIsNeverCalledHasTheFiguresOfItsModules) {
  const MemoryProfile profile = profile_of(
      "# phase forward step 0\n# enter\n"
      "# enter layers.0\n> aten::x\n+ 1 8 temporary\n- 1\n+ 2 4 activation\n< f32[1]@2\n# leave layers.0\n"
      "# enter layers.1\n> aten::x f32[1]@2\n+ 3 6 temporary\n- 3\n+ 4 4 activation\n< f32[1]@4\n# leave "
      "layers.1\n"
      "# leave\n");
  EXPECT_EQ(profile.modules[1].path, "layers");
  EXPECT_EQ(profile.modules[1].forward_out.count, 4 + 4);
  EXPECT_EQ(profile.modules[1].forward_tmp.count, 8 - 4);
}

TEST(MemoryProfile, WithoutALossNothingIsKept) {
  EXPECT_EQ(profile_of("+ 1 8 input\nnode #1 A\nsave 1 A#1\nloss 0\n").saved.count, 0);
}

// No memory from the first request of more than 100 bytes on.
class SmallAllocator final : public DeviceAllocator {
 public:
  std::optional<BlockNumber> allocate(int64_t bytes, uint16_t stream) override {
    return bytes > 100 ? std::nullopt : exact_.allocate(bytes, stream);
  }
  void free(BlockNumber block) override { exact_.free(block); }
  void record_stream(BlockNumber block, uint16_t stream) override { uses.push_back({block, stream}); }
  void empty_cache() override {}
  void reset_peaks() override { exact_.reset_peaks(); }
  AllocatorNumbers numbers() const override { return exact_.numbers(); }

  std::vector<std::pair<BlockNumber, uint16_t>> uses;

 private:
  ExactAllocator exact_;
};

TEST(Phases, EndWhereMemoryRunsOut) {
  const Trace trace = parse_trace(
      "# phase setup\n+ 1 64 parameter\n# phase forward step 0\n# enter fc\n> aten::linear composite\n> "
      "aten::mm\n"
      "+ 2 101 activation\n<\n<\n# phase backward step 0\n");
  SmallAllocator allocator;
  const Phases phases = replay(trace, kFirstGpu, allocator);
  ASSERT_EQ(phases.rows.size(), 2u);
  ASSERT_TRUE(phases.out_of_memory);
  EXPECT_EQ(phases.out_of_memory->part.phase, Phase::forward);
  EXPECT_EQ(phases.out_of_memory->op, "aten::mm");
  EXPECT_EQ(phases.out_of_memory->module, "fc");
  EXPECT_EQ(phases.out_of_memory->requested.count, 101);
  EXPECT_EQ(trace.events[phases.out_of_memory->event].id, 2u) << "the second storage";
}

// The error is asked of the node that made the failed call (the second), and the first one's results go.
TEST(Phases, AnErrorTakesWhatWaitsInItsStatement) {
  Trace trace = parse_trace(
      "# phase setup\n+ 1 10 input\n# phase forward step 0\n> aten::mul\n+ 2 30 activation\n<\n> "
      "aten::exp\n+ 3 5 "
      "temporary\n+ 4 101 activation\n<\n");
  int64_t node = 0;
  for (Event& event : trace.events)
    if (event.kind == Event::Kind::call) event.value = ++node;
  const auto left = [&](const WaitingResults& waiting) {
    SmallAllocator allocator;
    return replay(trace, kFirstGpu, allocator, waiting).rows.back().numbers.requested_bytes.current;
  };
  EXPECT_EQ(left({}), 10 + 30);
  size_t asked = 0;
  EXPECT_EQ(left([&](size_t failed) {
              asked = failed;
              return std::vector<size_t>{0};
            }),
            10);
  EXPECT_EQ(asked, 1u);
}

// The peak is that of what was run: of the 64 bytes, and not of what would have followed.
TEST(MemoryProfile, WhatFollowsTheLastRequestIsNotAlive) {
  const Trace trace = parse_trace("# phase setup\n+ 1 64 parameter\n+ 2 101 input\n+ 3 7 input\n");
  SmallAllocator allocator;
  const MemoryProfile profile = profile_memory(trace, kFirstGpu, allocator);
  EXPECT_EQ(profile.peak.bytes.count, 64);
  EXPECT_EQ(profile.phases.peak.requested_bytes.peak, 64);
}

TEST(Phases, WhatAnOptimizersConstructorMakesIsNotTheSetups) {
  const Trace trace = parse_trace(
      "# phase setup\n+ 1 64 parameter\n# pause\n+ 2 32 optimizer_state\n+ 3 16 optimizer_state\n# phase "
      "forward step "
      "0\n");
  ExactAllocator allocator;
  const Phases phases = replay(trace, kFirstGpu, allocator);
  ASSERT_EQ(phases.rows.size(), 2u);
  EXPECT_EQ(phases.rows[0].numbers.requested_bytes.current, 64);
  EXPECT_EQ(phases.rows[1].numbers.requested_bytes.current, 64 + 32 + 16);
}

TEST(Phases, UsesOnOtherStreamsReachTheAllocator) {
  const Trace trace = parse_trace("# phase setup\n+ 1 64 parameter\n+ 2 8 input\nrecord_stream 2 3\n");
  SmallAllocator allocator;
  replay(trace, kFirstGpu, allocator);
  ASSERT_EQ(allocator.uses.size(), 1u);
  EXPECT_EQ(allocator.uses[0], (std::pair<BlockNumber, uint16_t>{1, 3}));
}

}  // namespace
}  // namespace metaprof
