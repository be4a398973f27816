#include "meta/step/checkpointed_modules.h"

#include <fnmatch.h>

#include <sstream>

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
  explicit Pattern(const std::string& pattern) : text(pattern), segments_(segments(pattern)) {}

  std::string text;
  bool used = false;

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

// Notes which patterns match something, be it inside a match.
Match outermost_match(const std::vector<ModuleCall>& stack, std::vector<Pattern>& patterns) {
  Match outermost;
  for (size_t i = 0; i < stack.size(); ++i)
    for (Pattern& pattern : patterns) {
      if (!pattern.matches(stack[i].path)) continue;
      pattern.used = true;
      if (outermost.depth == 0) outermost = {i + 1, stack[i].key};
    }
  return outermost;
}

std::vector<Pattern> patterns_of(const std::string& text) {
  std::vector<Pattern> patterns;
  std::istringstream words(text);
  for (std::string word; words >> word;) patterns.emplace_back(word);
  return patterns;
}

}  // namespace

std::vector<CheckpointRegion> checkpointed_modules(const Program& program, const std::string& patterns,
                                                   bool reentrant) {
  std::vector<Pattern> wanted = patterns_of(patterns);
  std::vector<Match> matches;  // per module stack
  for (const auto& stack : program.module_stacks) matches.push_back(outermost_match(stack, wanted));
  std::vector<CheckpointRegion> regions;
  Match current;
  for (size_t i = 0; i < program.graph.nodes.size(); ++i) {
    const GraphNode& node = program.graph.nodes[i];
    const int32_t modules = node.modules;
    // What a captured program does between the calls of a module belongs to no module, but parts none.
    if (modules < 0 && node.op.starts_with("step::") && node.op != "step::phase") continue;
    const Match here = modules < 0 ? Match() : matches[size_t(modules)];
    if (here.depth && here != current) regions.push_back({.begin = i, .end = i, .reentrant = reentrant});
    if (here.depth) regions.back().end = i + 1;
    current = here;
  }
  for (const Pattern& pattern : wanted)
    if (!pattern.used) fail("--checkpoint: no module of {} matches '{}'", program.name, pattern.text);
  if (regions.empty()) fail("--checkpoint: no module of {} matches '{}'", program.name, patterns);
  return regions;
}

}  // namespace metaprof
