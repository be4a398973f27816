#include "step/checkpointed_modules.h"

#include <fnmatch.h>

#include <algorithm>

#include "core/error.h"
#include "step/checkpoint_text.h"
#include "step/repeated_modules.h"

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
  explicit Pattern(const CheckpointItem& item) : item_(item), segments_(segments(item.first)) {}

  const CheckpointItem& item() const { return item_; }
  bool used = false;

  bool matches(const std::string& path) const {
    if (!item_.last.empty()) return path == item_.first;
    const auto given = segments(path);
    if (given.size() != segments_.size()) return false;
    for (size_t i = 0; i < given.size(); ++i)
      if (fnmatch(segments_[i].c_str(), given[i].c_str(), 0) != 0) return false;
    return true;
  }

 private:
  const CheckpointItem& item_;
  std::vector<std::string> segments_;
};

[[noreturn]] void refuse(const Program& program, const std::string& pattern) {
  const std::string layers = repeated_modules(program);
  fail("--checkpoint: no module of {} matches '{}'{}", program.name, pattern,
       layers.empty() ? "" : "; its layers are '" + layers + "'");
}

// A call of a module: its depth in the stack (from 1; 0: none), its key and the pattern.
struct Match {
  size_t depth = 0;
  std::string key;
  Pattern* pattern = nullptr;
  friend bool operator==(const Match&, const Match&) = default;
};

class Matcher {
 public:
  Matcher(const Program& program, bool reentrant)
      : program_(program), nodes_(program.graph.nodes), reentrant_(reentrant) {}

  // The regions of these items among nodes `begin` … `end` − 1, whose module calls begin at `depth`.
  std::vector<RecomputeRegion> find(const std::vector<CheckpointItem>& items, size_t begin, size_t end,
                                    size_t depth) {
    std::vector<Pattern> patterns(items.begin(), items.end());
    std::vector<Match> matches;  // per module stack
    for (const auto& stack : program_.module_stacks) matches.push_back(outermost(stack, depth, patterns));
    std::vector<RecomputeRegion> regions;
    for (size_t node = begin; node < end;) {
      const Match here = match_at(matches, node);
      size_t next = node + 1;
      for (size_t after = next; after < end; ++after) {
        if (parts_nothing(after)) continue;
        if (match_at(matches, after) != here) break;
        next = after + 1;
      }
      if (here.pattern) {
        here.pattern->used = true;
        const CheckpointItem& item = here.pattern->item();
        if (!item.last.empty()) next = end_of(item, node, end);
        regions.push_back({.begin = node,
                           .end = next,
                           .reentrant = reentrant_,
                           .offload = item.offload,
                           .kept = item.kept,
                           .inside = find(item.inside, node, next, item.last.empty() ? here.depth : 0)});
      }
      node = next;
    }
    for (const Pattern& pattern : patterns)
      if (!pattern.used) refuse(program_, pattern.item().first);
    return regions;
  }

 private:
  // Notes which patterns match something, be it inside a match.
  static Match outermost(const std::vector<ModuleCall>& stack, size_t depth, std::vector<Pattern>& patterns) {
    Match found;
    for (size_t i = depth; i < stack.size(); ++i)
      for (Pattern& pattern : patterns) {
        if (!pattern.matches(stack[i].path)) continue;
        pattern.used = true;
        if (found.depth == 0) found = {i + 1, stack[i].key, &pattern};
      }
    return found;
  }

  Match match_at(const std::vector<Match>& matches, size_t node) const {
    const int32_t modules = nodes_[node].modules;
    return modules < 0 ? Match() : matches[size_t(modules)];
  }

  // What a captured program does between the calls of a module belongs to no module, but parts none.
  bool parts_nothing(size_t node) const {
    const GraphNode& call = nodes_[node];
    return call.modules < 0 && call.op.starts_with("step::") && call.op != "step::phase";
  }

  bool is_in(size_t node, const std::string& path) const {
    const int32_t modules = nodes_[node].modules;
    return modules >= 0 &&
           std::ranges::find(program_.module_stacks[size_t(modules)], path, &ModuleCall::path) !=
               program_.module_stacks[size_t(modules)].end();
  }

  // Behind the last node of `item.last`, of its next call.
  size_t end_of(const CheckpointItem& item, size_t begin, size_t end) const {
    size_t node = begin;
    while (node < end && !is_in(node, item.last)) ++node;
    if (node == end)
      fail("--checkpoint: '{}..{}': {} does not call the last module after the first", item.first, item.last,
           program_.name);
    while (node < end && is_in(node, item.last)) ++node;
    return node;
  }

  const Program& program_;
  const std::vector<GraphNode>& nodes_;
  const bool reentrant_;
};

}  // namespace

std::vector<RecomputeRegion> checkpointed_modules(const Program& program, const std::string& text,
                                                  bool reentrant) {
  Matcher matcher(program, reentrant);
  std::vector<RecomputeRegion> regions =
      matcher.find(checkpoint_items(text), 0, program.graph.nodes.size(), 0);
  if (regions.empty()) refuse(program, text);
  return regions;
}

}  // namespace metaprof
