#pragma once
// The program that asks the real cuDNN, in a process of its own.

#include <cstdint>
#include <optional>
#include <string>

namespace metaprof::emulator::cudnn {

/// The helper's answer in bytes; nothing if there is no plan, or no helper: that is said on stderr once. One caller at a
/// time.
std::optional<int64_t> ask_helper(const std::string& question);

}  // namespace metaprof::emulator::cudnn
