#include "meta/platform/cudnn/cudnn_planner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "meta/platform/cudnn/device_description.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

TEST(DeviceDescription, IsWhatCudnnReads) {
  const auto json = nlohmann::json::parse(cudnn_description(platform_named("h200")));
  EXPECT_EQ(json["deviceVer"], 900);  // 100 · compute capability
  EXPECT_EQ(json["multiProcessorCount"], 132);
  EXPECT_EQ(json["deviceName"], "NVIDIA H200");
  EXPECT_EQ(json["maxSharedMemoryPerBlockOptin"], 232448);
  EXPECT_EQ(json["maxGridSize"].size(), 3u);
}

TEST(DeviceDescription, NamesCannotEndTheText) {
  Platform device = platform_named("a100");
  device.hardware.name = "mine";
  device.hardware.title = "a \"card\"\n\\";
  const auto json = nlohmann::json::parse(cudnn_description(device));
  EXPECT_EQ(json["deviceName"], "a card");
  EXPECT_EQ(json["smClockRateKHz"], 1410000);
}

TEST(DeviceDescription, WhatIsNotSaidIsThatOfTheNearestComputeCapability) {
  Platform device = platform_named("a100");
  device.hardware.sm = 85;
  device.hardware.clock_khz = 0;
  device.hardware.l2_cache = {1000};
  const auto json = nlohmann::json::parse(cudnn_description(device));
  EXPECT_EQ(json["smClockRateKHz"], 1740000) << "8.6, an A40, is nearer to 8.5 than 8.0 is";
  EXPECT_EQ(json["l2CacheSize"], 1000);
}

// x [32,64,56,56], w [64,64,3,3], stride and padding 1, fp32, row-major.
ConvolutionPlan plan(PlannedOp op) {
  static constexpr int64_t x[] = {32, 64, 56, 56}, w[] = {64, 64, 3, 3}, ones[] = {1, 1};
  static constexpr int64_t x_strides[] = {200704, 3136, 56, 1}, w_strides[] = {576, 9, 3, 1};
  return {.op = op,
          .x = x,
          .w = w,
          .stride = ones,
          .padding = ones,
          .dilation = ones,
          .x_strides = x_strides,
          .w_strides = w_strides,
          .y_strides = x_strides,
          .dtype = DType::f32};
}

TEST(CudnnPlanner, WithoutALibraryItKnowsNothing) {
  CudnnPlanner planner({"/nowhere/libcudnn.so.9"});
  EXPECT_EQ(planner.failure(), "") << "nothing was asked yet";
  EXPECT_EQ(planner.convolution(plan(PlannedOp::conv_fwd), platform_named("h200")), std::nullopt);
  EXPECT_EQ(planner.version(), 0);
  EXPECT_NE(planner.failure().find("/nowhere/libcudnn.so.9"), std::string::npos) << planner.failure();
}

TEST(CudnnPlanner, WhatIsNoCudnnIsRefused) {
  CudnnPlanner planner({"libc.so.6"});
  EXPECT_EQ(planner.convolution(plan(PlannedOp::conv_fwd), platform_named("h200")), std::nullopt);
  EXPECT_EQ(planner.failure(), "libc.so.6 has no function cudnnGetVersion");
}

TEST(CudnnPlanner, TheEnvironmentNamesTheLibrary) {
  const char* before = std::getenv("METAPROF_CUDNN");
  const std::string kept = before ? before : "";
  setenv("METAPROF_CUDNN", "/opt/mine/libcudnn.so.9", 1);
  EXPECT_EQ(CudnnPlanner::candidates(), (std::vector<std::string>{"/opt/mine/libcudnn.so.9"}));
  setenv("METAPROF_CUDNN", "/tmp", 1);
  EXPECT_EQ(CudnnPlanner::candidates(), (std::vector<std::string>{"/tmp/libcudnn.so.9"}));
  if (before) {
    setenv("METAPROF_CUDNN", kept.c_str(), 1);
  } else {
    unsetenv("METAPROF_CUDNN");
  }
}

// Figures of cuDNN 9.19.0.
TEST(CudnnPlanner, PlansForADescribedDevice) {
  CudnnPlanner planner;
  const std::optional<int64_t> forward =
      planner.convolution(plan(PlannedOp::conv_fwd), platform_named("h200"));
  if (!planner.failure().empty()) GTEST_SKIP() << planner.failure();
  if (planner.version() != 91900) GTEST_SKIP() << "cuDNN " << planner.version() << " plans otherwise";
  EXPECT_EQ(forward, 25837584);
  EXPECT_EQ(planner.convolution(plan(PlannedOp::conv_dgrad), platform_named("h200")), 51527696);
  EXPECT_EQ(planner.convolution(plan(PlannedOp::conv_wgrad), platform_named("h200")), 51822803);
  EXPECT_EQ(planner.convolution(plan(PlannedOp::conv_fwd), platform_named("h200")), forward) << "again";
  CudnnPlanner other;
  EXPECT_EQ(other.convolution(plan(PlannedOp::conv_wgrad), platform_named("a100")), 54641215);
}

}  // namespace
}  // namespace metaprof
