// Versions of the framework as texts, and what they do differently.

#include "meta/platform/framework.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

constexpr FrameworkVersion version(int minor, int patch = 0) {
  return {.major = 2, .minor = minor, .patch = patch};
}

TEST(FrameworkVersion, IsReadWithAndWithoutPatchAndBuild) {
  const std::pair<const char*, FrameworkVersion> cases[] = {
      {"2.11", version(11)},
      {"2.6.0", version(6)},
      {"2.7.1", version(7, 1)},
      {"2.15.0+cu132", version(15)},
      {"2.12.0a0+git1234", version(12)},
      {"2.9.0.dev20250801", version(9)},
      {"2.13.0rc2", version(13)},
      {"3.0", {.major = 3, .minor = 0, .patch = 0}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(parse_framework_version(text), expected) << text;
  EXPECT_EQ(to_string(version(7, 1)), "2.7.1");
}

std::string message_of(const char* text) {
  try {
    parse_framework_version(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FrameworkVersion, WhatIsNoneIsRefused) {
  for (const char* text : {"", "2", "2.", "two", "2.x", "2.11.", "2.11.0.1", "2.11-3", "-2.11", "v2.11"})
    EXPECT_EQ(message_of(text),
              "'" + std::string(text) + "' is no version of PyTorch; expected one such as 2.15.0");
  EXPECT_EQ(message_of("2.5.1"), "PyTorch 2.5.1 is not known; the oldest version that is known is 2.6.0");
}

// Sizes in bytes: 32 MiB, 2 · 4 MiB + 8 · 16 KiB, 1 MiB.
constexpr int64_t kLarge = 33554432, kSmall = 8519680, kLt = 1048576;

Platform platform(const char* hardware, int minor) {
  return with_framework(platform_named(hardware), version(minor));
}

TEST(Framework, WorkspacesOfCublas) {
  for (int minor = 6; minor <= 15; ++minor) {
    EXPECT_EQ(platform("h200", minor).cublas_workspace().count, kLarge);
    EXPECT_EQ(platform("a100", minor).cublas_workspace().count, kSmall);
    EXPECT_EQ(platform("h200", minor).framework.keeps_cublas_workspaces, minor < 15) << minor;
  }
  Platform blackwell = platform("h200", 11);
  blackwell.hardware.sm = 100;
  EXPECT_EQ(blackwell.cublas_workspace().count, kSmall);
  EXPECT_EQ(with_framework(blackwell, version(15)).cublas_workspace().count, kLarge);
}

TEST(Framework, WorkspacesOfCublasLt) {
  using enum CublasLtWorkspace;
  const CublasLtWorkspace expected[] = {per_call_around_cublas,
                                        per_call_around_cublas,
                                        per_call_around_cublas,
                                        kept,
                                        kept,
                                        kept,  // 2.6 to 2.11
                                        shared_with_cublas,
                                        shared_with_cublas,
                                        shared_with_cublas,
                                        per_call};
  for (int minor = 6; minor <= 15; ++minor)
    EXPECT_EQ(framework_of(version(minor)).cublas_lt_workspace, expected[minor - 6]) << minor;
}

TEST(Framework, EnvironmentVariablesSayHowLargeWorkspacesAre) {
  const auto with = [](int minor, std::map<std::string, std::string> environment) {
    return with_environment(platform("h200", minor), environment);
  };
  EXPECT_EQ(with(11, {{"CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8"}}).cublas_workspace().count,
            4096 * 1024 * 2 + 16 * 1024 * 8);
  // 16 KiB · 8 = 128 KiB, to which 2.11 and later limit cuBLASLt's own.
  const std::map<std::string, std::string> little{{"CUBLAS_WORKSPACE_CONFIG", ":16:8"}};
  EXPECT_EQ(with(11, little).cublas_lt_workspace().count, 131072);
  EXPECT_EQ(with(10, little).cublas_lt_workspace().count, kLt);
  EXPECT_EQ(with(15, little).cublas_lt_workspace().count, kLt);
  for (const int minor : {6, 11, 15})
    EXPECT_EQ(with(minor, {{"CUBLASLT_WORKSPACE_SIZE", "4096"}}).cublas_lt_workspace().count, 4 * kLt)
        << minor;
}

// TORCH_CUBLASLT_UNIFIED_WORKSPACE is read from 2.8 on, from 2.15 on only where workspaces are kept, which
// TORCH_CUBLAS_WORKSPACE_CACHE says there.
TEST(Framework, EnvironmentVariablesSayWhoseWorkspaceCublasLtTakes) {
  using enum CublasLtWorkspace;
  const std::string unified = "TORCH_CUBLASLT_UNIFIED_WORKSPACE", cache = "TORCH_CUBLAS_WORKSPACE_CACHE";
  const struct {
    int minor;
    std::map<std::string, std::string> environment;
    CublasLtWorkspace expected;
    bool kept;
  } table[] = {{7, {{unified, "1"}}, per_call_around_cublas, true},
               {8, {{unified, "1"}}, shared_with_cublas, true},
               {11, {{unified, "1"}}, shared_with_cublas, true},
               {11, {{unified, "0"}}, kept, true},
               {12, {{unified, "0"}}, kept, true},
               {12, {{unified, "yes"}}, shared_with_cublas, true},  // neither 0 nor 1 says nothing
               {14, {{cache, "0"}}, shared_with_cublas, true},
               {15, {{unified, "1"}}, per_call, false},
               {15, {{cache, "1"}}, shared_with_cublas, true},
               {15, {{cache, "1"}, {unified, "0"}}, kept, true},
               {15, {{cache, "0"}}, per_call, false}};
  for (const auto& [minor, environment, expected, kept] : table) {
    const Framework framework = with_environment(platform("h200", minor), environment).framework;
    EXPECT_EQ(framework.cublas_lt_workspace, expected) << minor << " " << environment.begin()->first;
    EXPECT_EQ(framework.keeps_cublas_workspaces, kept) << minor << " " << environment.begin()->first;
  }
}

// Implementations in Triton, which are there from 2.13 on, are turned off; those compiled ahead of time ask for no other
// memory.
TEST(Framework, EnvironmentVariablesTurnNativeImplementationsOff) {
  const auto outer = [](int minor, const char* name, const char* value) {
    return with_environment(platform("h200", minor), {{name, value}}).framework.has_kernel_for_outer_products;
  };
  EXPECT_TRUE(outer(13, "TORCH_DISABLE_NATIVE_JIT", "0"));
  EXPECT_FALSE(outer(13, "TORCH_DISABLE_NATIVE_JIT", "1"));
  EXPECT_FALSE(outer(12, "TORCH_DISABLE_NATIVE_JIT", "0"));
  EXPECT_TRUE(outer(15, "TORCH_DISABLE_NATIVE_AOT", "1"));
}

TEST(Framework, WhatEarlierVersionsDid) {
  for (int minor = 6; minor <= 15; ++minor) {
    const Framework framework = framework_of(version(minor));
    EXPECT_EQ(framework.flash_random_state_on_device, minor >= 7) << minor;
    EXPECT_EQ(framework.sums_layer_norm_in_parts, minor >= 8) << minor;
    EXPECT_EQ(framework.slices_whole_dimensions, minor <= 8) << minor;
    EXPECT_EQ(framework.reads_alloc_conf, minor >= 10) << minor;
  }
}

TEST(Framework, TheOrderOfFreeBlocks) {
  EXPECT_EQ(framework_of(version(11, 9)).free_block_order, FreeBlockOrder::address);
  EXPECT_EQ(framework_of(version(12)).free_block_order, FreeBlockOrder::block_record);
  EXPECT_EQ(framework_of(version(13)).free_block_order, FreeBlockOrder::segment);
}

TEST(Framework, ANewerVersionIsLikeTheNewestThatIsKnown) {
  const Framework unknown = framework_of(version(99)), newest = framework_of(kNewestFramework);
  EXPECT_EQ(unknown.keeps_cublas_workspaces, newest.keeps_cublas_workspaces);
  EXPECT_EQ(unknown.free_block_order, newest.free_block_order);
}

// The wheels of 2.10 and before bring a cuDNN whose attention is not preferred.
TEST(Framework, LibrariesComeWithIt) {
  EXPECT_EQ(platform("h200", 11).libraries.cudnn, 91900);
  EXPECT_EQ(platform("h200", 10).libraries.cudnn, 91002);
  EXPECT_FALSE(platform("h200", 10).libraries.attention_of_cudnn_is_preferred());
  EXPECT_TRUE(platform("h200", 11).libraries.attention_of_cudnn_is_preferred());
  EXPECT_EQ(platform("h200", 6).libraries.cuda, 12040);
}

}  // namespace
}  // namespace metaprof
