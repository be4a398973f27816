#pragma once

#include <cstdint>
#include <functional>

namespace metaprof {

struct Call;

/// What a selective checkpoint does with the results of a call: keeps them, or computes them again. "prefer"
/// leaves it to a compiler, which there is none of here.
enum class CheckpointPolicy : uint8_t { must_save, prefer_save, must_recompute, prefer_recompute };
/// Asked in forward and again when the region is computed again; must answer the same.
using CheckpointPolicyFunction = std::function<CheckpointPolicy(const Call& call, bool again)>;

}  // namespace metaprof
