// What grows while a program runs, by rows as the recorder writes them.

#include "capture/launch/growth.h"

#include <gtest/gtest.h>

namespace metaprof {
namespace {

RunPhase row(const char* phase, int64_t step, int64_t allocated) {
  RunPhase out;
  out.phase = out.name = phase;
  out.step = step;
  out.numbers.allocated_bytes = {allocated, allocated + 100};
  out.numbers.reserved_bytes = {allocated + 200, allocated + 200};
  return out;
}

// A step a number: what is allocated after its zero_grad.
RecordedDevice steps(const std::vector<int64_t>& ends) {
  RecordedDevice device;
  device.memory = {100'000};
  device.phases.push_back(row("setup", 0, 10));
  for (size_t i = 0; i < ends.size(); ++i) {
    device.phases.push_back(row("forward", static_cast<int64_t>(i), ends[i] + 50));
    device.phases.push_back(row("zero_grad", static_cast<int64_t>(i), ends[i]));
  }
  return device;
}

TEST(Growth, OfEachStepIsTold) {
  const auto growth = growth_by_step(steps({100, 150, 250, 350, 450, 550}), Bytes());
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->per_step.count, 100);
  EXPECT_EQ(growth->steps, 4);
  EXPECT_EQ(growth->ends_at, 6 + (100'000 - 750) / 100);
  EXPECT_EQ(growth_by_step(steps({100, 150, 250, 350, 450, 550}), Bytes{40'000})->ends_at,
            6 + (60'000 - 750) / 100);
  // A last step that was cut off before its end does not count.
  RecordedDevice cut = steps({100, 150, 250, 350, 450, 550});
  cut.phases.push_back(row("forward", 6, 9000));
  EXPECT_EQ(growth_by_step(cut, Bytes())->steps, 4);
}

TEST(Growth, WhatStaysOrVariesIsNone) {
  for (const std::vector<int64_t>& ends : std::vector<std::vector<int64_t>>{
           {100, 500, 500, 500, 500},       // the optimizer's state is made in the first steps
           {100, 200, 300, 400},            // too few to tell
           {100, 150, 250, 350, 350, 450},  // a step that leaves nothing
           {100, 150, 250, 200, 300, 400},  // up and down
           {100, 150, 160, 260, 560, 570},  // follows the data
           {100}})
    EXPECT_FALSE(growth_by_step(steps(ends), Bytes()));
}

TEST(Growth, ThatEndsAfterAMillionStepsIsNone) {
  RecordedDevice device = steps({100, 150, 151, 152, 153, 154});
  EXPECT_TRUE(growth_by_step(device, Bytes()));
  device.memory = {2'000'000};
  EXPECT_FALSE(growth_by_step(device, Bytes()));
}

TEST(Growth, TheLineThatMadeWhatIsLeftIsNamed) {
  RecordedDevice device = steps({100, 150, 250, 350, 450, 550});
  Trace trace;
  const auto born = [&](const char* line, int64_t bytes) {
    trace.events.push_back({.kind = Event::Kind::alloc, .id = static_cast<uint32_t>(trace.storages.size())});
    trace.storages.emplace_back().bytes = {bytes};
    device.lines.resize(trace.storages.size());
    device.lines.back() = line;
  };
  for (uint32_t step = 0; step < 3; ++step) {
    trace.events.push_back(
        {.kind = Event::Kind::phase, .detail = static_cast<uint8_t>(Phase::forward), .id = step});
    born("train.py:7", 1000);  // as large, but freed
    const auto freed = static_cast<uint32_t>(trace.storages.size() - 1);
    born("train.py:9", 100);
    trace.events.push_back({.kind = Event::Kind::free, .id = freed});
  }
  device.trace = std::move(trace);
  EXPECT_EQ(growth_by_step(device, Bytes())->line, "train.py:9");
}

// Twenty validation batches without no_grad.
RecordedDevice calls(int64_t after_backward) {
  RecordedDevice device;
  RunPhase forward = row("forward", 3, 20'000);
  forward.calls = 20;
  forward.growth_by_call = {1000};
  forward.calls_module = "ResNet";
  forward.calls_line = "val.py:17";
  device.phases = {row("setup", 0, 10), forward};
  if (after_backward > 0) device.phases.push_back(row("backward", 3, after_backward));
  return device;
}

TEST(Growth, OfCallsWithoutABackwardIsTold) {
  const auto growth = growth_by_call(calls(0));
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->calls, 20);
  EXPECT_EQ(growth->per_call.count, 1000);
  EXPECT_EQ(growth->line, "val.py:17");
  EXPECT_TRUE(growth_by_call(calls(19'000)));  // the backward is another's, and frees its own graph
}

TEST(Growth, OfAProgramWithoutAnOptimizerIsThatOfItsBackwards) {
  RecordedDevice device;
  device.memory = {100'000};
  for (const int64_t end : {100, 150, 250, 350, 450}) {
    device.phases.push_back(row("forward", 0, end + 50));
    device.phases.push_back(row("backward", 0, end));
  }
  EXPECT_EQ(growth_by_step(device, Bytes())->per_step.count, 100);
}

TEST(Growth, ResultsThatAreGatheredAndFreedLaterCountAtThePeakAlone) {
  RecordedDevice device = calls(0);
  device.phases.push_back(row("zero_grad", 3, 10));
  EXPECT_TRUE(growth_by_call(device));
  device.phases.insert(device.phases.begin() + 1, row("backward", 2, 30'000));  // the peak of the run
  device.phases.insert(device.phases.begin() + 2, row("zero_grad", 2, 10));
  EXPECT_FALSE(growth_by_call(device));
  device.out_of_memory.emplace_back();
  EXPECT_TRUE(growth_by_call(device));
}

TEST(Growth, CallsWhoseBackwardFreesThemAreNone) { EXPECT_FALSE(growth_by_call(calls(2'000))); }

}  // namespace
}  // namespace metaprof
