#include "meta/platform/cudnn/device_description.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaprof {
std::string cudnn_description(const Platform& platform) {
  const Hardware& device = platform.hardware;
  const Hardware& nearest = nearest_hardware(device);
  const auto said = [](auto own, auto otherwise) { return own > 0 ? own : otherwise; };
  std::string text = "{";
  const auto add = [&](std::string_view name, auto value) {
    text += fmt::format("{}\"{}\":{}", text.size() > 1 ? "," : "", name, value);
  };
  add("cudaDeviceId", 0);
  add("deviceVer", 10 * device.sm);
  add("driverVer", platform.libraries.cuda);
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
  add("maxCtasPerSM", said(device.blocks_per_multiprocessor, nearest.blocks_per_multiprocessor));
  add("maxThreadsPerBlock", 1024);
  add("maxThreadsPerSM", device.threads_per_multiprocessor);
  add("pciDeviceId", 0);
  add("isTccDriver", 0);
  add("supportCoopLaunch", 1);
  add("totalGlobalMem", device.memory.count);
  add("smClockRateKHz", said(device.clock_khz, nearest.clock_khz));
  add("memClockRateKHz", said(device.memory_clock_khz, nearest.memory_clock_khz));
  add("l2CacheSize", said(device.l2_cache.count, nearest.l2_cache.count));
  return text + "}";
}

}  // namespace metaprof
