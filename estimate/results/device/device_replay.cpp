#include "estimate/results/device/device_replay.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaprof {
namespace {

struct NamedNumber {
  AllocatorNumber AllocatorNumbers::*number;
  std::string_view name;
};
constexpr NamedNumber kNumbers[] = {{&AllocatorNumbers::allocated_bytes, "allocated_bytes"},
                                    {&AllocatorNumbers::requested_bytes, "requested_bytes"},
                                    {&AllocatorNumbers::active_bytes, "active_bytes"},
                                    {&AllocatorNumbers::reserved_bytes, "reserved_bytes"},
                                    {&AllocatorNumbers::inactive_split_bytes, "inactive_split_bytes"},
                                    {&AllocatorNumbers::allocation, "allocation"},
                                    {&AllocatorNumbers::segment, "segment"}};

void compare(const PhaseRow& estimated, const PhaseRow& real, std::vector<std::string>& out) {
  for (const NamedNumber& named : kNumbers) {
    const AllocatorNumber &one = estimated.numbers.*named.number, &other = real.numbers.*named.number;
    const auto differ = [&](std::string_view what, int64_t a, int64_t b) {
      if (a != b)
        out.push_back(fmt::format("{}: {}.{}: estimated {}, real {}", to_string(estimated.part), named.name,
                                  what, a, b));
    };
    differ("current", one.current, other.current);
    differ("peak", one.peak, other.peak);
  }
}

std::string text_of(const std::optional<OutOfMemory>& failed) {
  return failed ? fmt::format("a request of {} bytes in {}", failed->requested.count, to_string(failed->part))
                : "none";
}

}  // namespace

std::string_view to_string(ReplayedAs as) {
  switch (as) {
    case ReplayedAs::product: return "cuBLAS product";
    case ReplayedAs::convolution: return "cuDNN convolution";
    case ReplayedAs::copy: return "copy";
    case ReplayedAs::same_flops: return "product of as many FLOPs";
    case ReplayedAs::same_bytes: return "kernel of as many bytes";
  }
  return "";
}

std::string to_string(const StepPart& part) {
  if (part.phase == Phase::setup && part.step == 0) return "setup";
  const std::string micro = part.micro >= 0 ? fmt::format(" micro {}", part.micro) : "";
  return fmt::format("step {} {}{}", part.step, to_string(part.phase), micro);
}

std::vector<std::string> differences(const Phases& estimated, const Phases& real) {
  std::vector<std::string> out;
  const std::optional<OutOfMemory>&one = estimated.out_of_memory, &other = real.out_of_memory;
  if (one.has_value() != other.has_value() || (one && one->event != other->event))
    out.push_back(fmt::format("out of memory: estimated {}, real {}", text_of(one), text_of(other)));
  if (estimated.rows.size() != real.rows.size())
    out.push_back(
        fmt::format("parts of the steps: estimated {}, real {}", estimated.rows.size(), real.rows.size()));
  for (size_t i = 0; i < std::min(estimated.rows.size(), real.rows.size()); ++i)
    compare(estimated.rows[i], real.rows[i], out);
  return out;
}

}  // namespace metaprof
