#pragma once
// Programs side by side, a few at a time, with what they print in files.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace metaprof {

struct Job {
  std::vector<std::string> words;  ///< the program, looked up in PATH, and its arguments
  std::filesystem::path output;    ///< gets what it prints
};

/// Runs them to their ends, at most `most` at once, without input. The exit status of each, or 128 + the signal that ended
/// it. When this process ends, they are asked to end (SIGTERM). `ended`: called with the number of those that have ended; may be empty.
/// Errors: a program cannot be run; a file cannot be written.
std::vector<int> run_side_by_side(const std::vector<Job>& jobs, size_t most,
                                  const std::function<void(size_t)>& ended);

}  // namespace metaprof
