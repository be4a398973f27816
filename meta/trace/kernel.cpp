#include "meta/trace/kernel.h"

#include <array>

namespace metaprof {
namespace {

constexpr std::array<std::string_view, 4> kKernelNames = {"other", "cudnn", "attention", "depthwise"};

}  // namespace

std::string_view to_string(Kernel kernel) { return kKernelNames[static_cast<size_t>(kernel)]; }

std::optional<Kernel> kernel_named(std::string_view name) {
  for (size_t i = 0; i < kKernelNames.size(); ++i)
    if (kKernelNames[i] == name) return static_cast<Kernel>(i);
  return std::nullopt;
}

}  // namespace metaprof
