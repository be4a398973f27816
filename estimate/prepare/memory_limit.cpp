#include "estimate/prepare/memory_limit.h"

#include <algorithm>

#include "core/error.h"
#include "estimate/prepare/model.h"
#include "estimate/prepare/sizes.h"
#include "meta/allocator/device_memory.h"

namespace metaprof {

OutsideAllocator outside_of(const RunOptions& options, const Platform& platform) {
  if (options.context.empty()) {
    const Bytes measured = measured_rates(options).outside;
    return measured.count > 0 ? outside_allocator(platform, measured) : outside_allocator(platform);
  }
  const bool none = platform.device().is_cpu() || options.context == "none" || options.context == "0";
  const Bytes given = none ? Bytes() : parse_size(options.context);
  return {.least = given, .most = given, .source = {}};
}

double margin_of(const RunOptions& options) {
  const double margin = parse_share(options.margin, "--margin");
  if (margin >= 1) fail("--margin: {} leaves nothing; a share is 5% or 0.05", options.margin);
  return margin;
}

Bytes available_memory(const RunOptions& options, const Platform& platform) {
  const auto usable =
      static_cast<int64_t>(static_cast<double>(platform.hardware.memory.count) * (1 - margin_of(options)));
  return {std::max<int64_t>(0, usable - outside_of(options, platform).most.count)};
}

Bytes unlimited_memory() { return {DeviceMemory::kMostMemory}; }

MemoryLimit memory_limit(const RunOptions& options, const Platform& platform) {
  return {.outside = outside_of(options, platform),
          .margin = margin_of(options),
          .available = available_memory(options, platform)};
}

}  // namespace metaprof
