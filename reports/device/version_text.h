#pragma once
// Versions as CUDA's libraries number them.

#include <fmt/format.h>

#include <string>

namespace metaprof {

/// "13.0" of 13000; "-" of 0.
inline std::string cuda_version_text(int version) {
  return version == 0 ? "-" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Of cuBLAS and cuDNN: "13.1.0" of 130100; "-" of 0.
inline std::string library_version_text(int version) {
  return version == 0 ? "-" : fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace metaprof
