#pragma once
// What was found, each kind once: a file that reproduces it with `metaprof`, and what a sanitizer wrote.

#include <functional>
#include <map>
#include <string>

#include "tests/fuzz/hostile_case.h"
#include "tests/fuzz/watched_cases.h"

namespace metaprof {

class Findings {
 public:
  /// `make`: the case of a number, `shrink`: the case with less in it that `fails` still says to be wrong; may be empty.
  using Make = std::function<HostileCase(uint64_t number)>;
  using Fails = std::function<bool(const HostileCase&)>;
  using Shrink = std::function<HostileCase(HostileCase, const Fails&)>;
  Findings(std::string folder, Make make, Shrink shrink);

  void add(const Finding& finding);
  size_t count() const { return count_; }
  /// Each kind and how often it was found, a line each.
  std::string text() const;

 private:
  void write(const Finding& finding, const std::string& name) const;

  const std::string folder_;
  const Make make_;
  const Shrink shrink_;
  std::map<std::string, size_t> kinds_;
  size_t count_ = 0;
};

/// Runs the cases from `begin` to `begin` + `count` and prints what became of them. The exit status of a program.
int run_cases(uint64_t begin, uint64_t count, const std::string& folder, const Findings::Make& make,
              const Findings::Shrink& shrink);

}  // namespace metaprof
