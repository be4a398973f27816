#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/error.h"
#include "estimate/prepare/sizes.h"
#include "meta/platform/files/device_file.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sizes, HaveBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_size("150121480192").count, 150121480192);
  EXPECT_EQ(parse_size("24GiB").count, int64_t{24} << 30);
  EXPECT_EQ(parse_size("1.5 MiB").count, 3 << 19);
  EXPECT_EQ(parse_size("80GB").count, 80000000000);
  EXPECT_EQ(parse_size("1e9B").count, 1000000000);
}

TEST(Sizes, AnythingElseIsRefused) {
  for (const char* text : {"", "GiB", "24 gib", "-1", "0", "1e300", "nan", "24GiBx", "24 GiB ", "4096TiB"})
    EXPECT_TRUE(message_of([&] { parse_size(text); }).find("is not a size") != std::string::npos) << text;
}

class DeviceFile : public testing::Test {
 protected:
  std::string write(std::string_view text) {
    std::ofstream(file_) << text;
    return file_;
  }
  std::string refusal(std::string_view text) {
    const std::string message = message_of([&] { read_device_file(write(text)); });
    const size_t at = message.find(file_);
    return at == std::string::npos ? message : message.substr(at + file_.size());
  }
  const std::string file_ = testing::TempDir() + "metaprof_device_" + std::to_string(getpid()) + ".json";
};

TEST_F(DeviceFile, TakesWhatItLeavesOutFromAnotherDevice) {
  const Hardware profile = read_device_file("tests/data/devices/half_h100.json").hardware;
  const Hardware& h100 = *find_hardware("h100");
  EXPECT_EQ(profile.name, "half_h100");
  EXPECT_EQ(profile.title, "half of an H100");
  EXPECT_EQ(profile.memory.count, h100.memory.count / 2);
  EXPECT_EQ(profile.sm, h100.sm);
  EXPECT_EQ(profile.bandwidth, h100.bandwidth);
  EXPECT_EQ(profile.memory_clock_khz, 2619000) << "the H100's; an H200's memory is faster";
}

TEST_F(DeviceFile, DescribesADeviceOfItsOwn) {
  const Platform platform = read_device_file(write(
      R"({"name": "x", "type": "cuda", "sm": 120, "multiprocessors": 10, "memory": 1000, "bandwidth": 1e12,
          "cudnn": 90100})"));
  const Hardware& profile = platform.hardware;
  EXPECT_EQ(platform.libraries.cudnn, 90100);
  EXPECT_EQ(profile.name, "x");
  EXPECT_EQ(profile.type, DeviceType::cuda);
  EXPECT_EQ(profile.sm, 120);
  EXPECT_EQ(profile.memory.count, 1000);
  EXPECT_EQ(profile.bandwidth, 1e12);
}

TEST_F(DeviceFile, WhatIsNoDeviceIsRefused) {
  EXPECT_EQ(message_of([] { read_device_file("nowhere.json"); }), "nowhere.json: no such file");
  EXPECT_NE(refusal("").find("JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("expected an object"), std::string::npos) << refusal("[]");
  EXPECT_NE(refusal(R"({"type": "cuda"})").find("memory"), std::string::npos);
  EXPECT_EQ(refusal(R"({"like": "h900"})"),
            ": like: there is no such device; `metaprof devices` lists those that are known");
  EXPECT_EQ(refusal(R"({"like": "h100", "memory": -1})"),
            ": memory: expected a number from 1 to 1125899906842624");
  EXPECT_EQ(refusal(R"({"like": "h100", "bandwidth": 0})"),
            ": bandwidth: expected a positive number per second");
  EXPECT_EQ(refusal(R"({"like": "h100", "type": "tpu"})"), R"(: type: expected "cuda" or "cpu")");
  EXPECT_NE(refusal(R"({"like": "h100", "speed": 1})").find(": speed: unknown key; there are like, name"),
            std::string::npos);
}

}  // namespace
}  // namespace metaprof
