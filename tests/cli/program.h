#pragma once
// Runs the program as a user would.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/read_file.h"

namespace metaprof {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

/// `words` as typed in a shell; `environment` as "NAME=value ".
inline Outcome run_program(const std::string& words, const std::string& environment = "") {
  const std::string base = testing::TempDir() + "metaprof_cli_" + std::to_string(getpid());
  const std::string command =
      environment + METAPROF_BINARY " " + words + " >" + base + ".out 2>" + base + ".err </dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.out = read_file(base + ".out");
  outcome.err = read_file(base + ".err");
  std::remove((base + ".out").c_str());
  std::remove((base + ".err").c_str());
  return outcome;
}

/// A refusal: one line on stderr, nothing on stdout, exit code 2.
inline void expect_refusal(const std::string& words, const std::string& message) {
  const Outcome outcome = run_program(words);
  EXPECT_EQ(outcome.exit_code, 2) << words;
  EXPECT_EQ(outcome.err, "metaprof: " + message + "\n") << words;
  EXPECT_EQ(outcome.out, "") << words;
}

/// The same, of a message that belongs to a reader and has a test there: it holds these words.
inline void expect_refusal_with(const std::string& words, const std::vector<std::string>& parts) {
  const Outcome outcome = run_program(words);
  EXPECT_EQ(outcome.exit_code, 2) << words;
  EXPECT_EQ(outcome.out, "") << words;
  EXPECT_TRUE(outcome.err.starts_with("metaprof: ")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  for (const std::string& part : parts) EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

}  // namespace metaprof
