#include "meta/platform/cudnn/device_description.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaprof {
namespace {

// Published facts of the cards (clocks: boost).
struct CardFacts {
  std::string_view name;
  int sm;
  int64_t clock_khz, memory_clock_khz, l2_bytes;
  int blocks_per_sm;
};
constexpr CardFacts kCards[] = {
    {"h200", 90, 1980000, 3201000, 62914560, 32},  {"h100", 90, 1980000, 2619000, 52428800, 32},
    {"a100", 80, 1410000, 1593000, 41943040, 32},  {"rtx4090", 89, 2520000, 10501000, 75497472, 24},
    {"l40s", 89, 2520000, 9001000, 100663296, 24}, {"t4", 75, 1590000, 5001000, 4194304, 16},
};

const CardFacts& facts_of(const DeviceProfile& device) {
  const CardFacts* nearest = &kCards[0];
  for (const CardFacts& card : kCards) {
    if (card.name == device.name) return card;
    if (std::abs(card.sm - device.sm) < std::abs(nearest->sm - device.sm)) nearest = &card;
  }
  return *nearest;
}

}  // namespace

std::string cudnn_description(const DeviceProfile& device) {
  const CardFacts& card = facts_of(device);
  std::string text = "{";
  const auto add = [&](std::string_view name, auto value) {
    text += fmt::format("{}\"{}\":{}", text.size() > 1 ? "," : "", name, value);
  };
  add("cudaDeviceId", 0);
  add("deviceVer", 10 * device.sm);
  add("driverVer", device.cuda);
  // A name in a description is no more than that; quotes would end it.
  std::string title = device.title;
  title.erase(
      std::remove_if(title.begin(), title.end(),
                     [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32; }),
      title.end());
  add("deviceName", "\"" + title + "\"");
  add("maxGridSize", "[2147483647,65535,65535]");
  add("maxBlockSize", "[1024,1024,64]");
  add("regsPerBlock", 65536);
  add("multiProcessorCount", device.multiprocessors);
  add("warpSize", 32);
  add("maxSharedMemoryPerBlock", 49152);
  add("maxSharedMemoryPerBlockOptin", device.shared_memory_per_block);
  add("reservedSharedMemoryPerBlock", device.sm >= 80 ? 1024 : 0);
  add("maxRegistersPerSM", 65536);
  add("maxCtasPerSM", card.blocks_per_sm);
  add("maxThreadsPerBlock", 1024);
  add("maxThreadsPerSM", device.threads_per_multiprocessor);
  add("pciDeviceId", 0);
  add("isTccDriver", 0);
  add("supportCoopLaunch", 1);
  add("totalGlobalMem", device.memory.count);
  add("smClockRateKHz", card.clock_khz);
  add("memClockRateKHz", card.memory_clock_khz);
  add("l2CacheSize", card.l2_bytes);
  return text + "}";
}

}  // namespace metaprof
