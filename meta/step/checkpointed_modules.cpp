#include "meta/step/checkpointed_modules.h"

#include <fnmatch.h>

#include "core/error.h"

namespace metaprof {
namespace {

std::vector<std::string> segments(const std::string& path) {
  std::vector<std::string> out(1);
  for (char c : path) {
    if (c == '.') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

class Pattern {
 public:
  explicit Pattern(const std::string& pattern) : segments_(segments(pattern)) {}

  bool matches(const std::string& path) const {
    const auto given = segments(path);
    if (given.size() != segments_.size()) return false;
    for (size_t i = 0; i < given.size(); ++i)
      if (fnmatch(segments_[i].c_str(), given[i].c_str(), 0) != 0) return false;
    return true;
  }

 private:
  std::vector<std::string> segments_;
};

// A call of a module: its depth in the stack (from 1; 0: none) and its key.
struct Match {
  size_t depth = 0;
  std::string key;
  friend bool operator==(const Match&, const Match&) = default;
};

Match outermost_match(const std::vector<ModuleCall>& stack, const Pattern& pattern) {
  for (size_t i = 0; i < stack.size(); ++i)
    if (pattern.matches(stack[i].path)) return {i + 1, stack[i].key};
  return {};
}

}  // namespace

std::vector<CheckpointRegion> checkpointed_modules(const Program& program, const std::string& pattern,
                                                   bool reentrant) {
  const Pattern wanted(pattern);
  std::vector<Match> matches;  // per module stack
  for (const auto& stack : program.module_stacks) matches.push_back(outermost_match(stack, wanted));
  std::vector<CheckpointRegion> regions;
  Match current;
  for (size_t i = 0; i < program.graph.nodes.size(); ++i) {
    const int32_t modules = program.graph.nodes[i].modules;
    const Match here = modules < 0 ? Match() : matches[size_t(modules)];
    if (here.depth && here != current) regions.push_back({.begin = i, .end = i, .reentrant = reentrant});
    if (here.depth) regions.back().end = i + 1;
    current = here;
  }
  if (regions.empty()) fail("--checkpoint: no module of {} matches '{}'", program.name, pattern);
  return regions;
}

}  // namespace metaprof
