#pragma once
// Runs the program on the emulated device. Built without CUDA, a test of what it does there is skipped.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace metaprof {

inline constexpr const char* kEmulated = "LD_LIBRARY_PATH=" METAPROF_EMULATOR_FOLDER " ";

/// `environment`: more of it, as "NAME=value ".
inline Outcome run_on_device(const std::string& words, const std::string& environment = "") {
  return run_program(words, kEmulated + environment);
}

#ifdef METAPROF_CUDA
#define METAPROF_NEEDS_CUDA() static_cast<void>(0)
#else
#define METAPROF_NEEDS_CUDA() GTEST_SKIP() << "built without CUDA's compiler and headers (tools/setup cuda)"
#endif

inline nlohmann::json json_on_device(const std::string& words, int exit_code = 0) {
  const Outcome outcome = run_on_device(words);
  EXPECT_EQ(outcome.exit_code, exit_code) << words << "\n" << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions*/ false);
}

}  // namespace metaprof
