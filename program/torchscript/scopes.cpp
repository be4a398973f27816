#include "program/torchscript/scopes.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"

namespace metaprof::script {
namespace {

constexpr int kDeepestScope = 1000;

}  // namespace

void Scopes::enter(size_t calls) {
  note(calls);
  if (++depth_ > kDeepestScope)
    fail("branches and loops stand in each other more than {} deep", kDeepestScope);
  parents_.push_back(current_);
  current_ = static_cast<int32_t>(parents_.size()) - 1;
}

void Scopes::leave(size_t calls) {
  note(calls);
  current_ = parents_[static_cast<size_t>(current_)];
  --depth_;
}

// From the whole graph down to the scope.
std::vector<int32_t> Scopes::path(int32_t scope) const {
  std::vector<int32_t> path;
  for (; scope >= 0; scope = parents_[static_cast<size_t>(scope)]) path.push_back(scope);
  std::ranges::reverse(path);
  return path;
}

void Scopes::use(ValueId value, size_t calls) {
  if (calls > 0) uses_.push_back({value, calls - 1, current_});
}

// Per call, the uses by it and behind it, the last one first.
std::vector<std::vector<Scopes::Use>> Scopes::uses_by_call(const Graph& graph) const {
  std::vector<std::vector<Use>> uses(graph.nodes.size());
  for (size_t i = uses_.size(); i-- > 0;) uses[uses_[i].behind].push_back(uses_[i]);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto add = [&](ValueId value) {
      if (value != kNoValue) uses[i].push_back({value, i, of_call_[i]});
    };
    for (const Operand& operand : graph.nodes[i].operands) {
      add(operand.value);
      std::ranges::for_each(operand.values, add);
    }
    for (const Target& target : graph.nodes[i].targets) std::ranges::for_each(target.values, add);
  }
  return uses;
}

void Scopes::drop_values(Program& program) const {
  Graph& graph = program.graph;
  const std::vector<std::vector<Use>> uses = uses_by_call(graph);
  std::vector<size_t> end_of(parents_.size(), 0);  // per scope: its last call
  std::vector<int32_t> made_in(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Use& use : uses[i])
      for (int32_t scope = use.scope; scope >= 0; scope = parents_[static_cast<size_t>(scope)])
        end_of[static_cast<size_t>(scope)] = i;
    for (const Target& target : graph.nodes[i].targets)
      for (const ValueId value : target.values)
        if (value != kNoValue) made_in[static_cast<size_t>(value)] = of_call_[i];
    graph.nodes[i].drops.clear();
  }
  // Where a value goes after its last use: where the outermost scope ends that it was not made in.
  const auto goes = [&](const Use& use) {
    const std::vector<int32_t> made = path(made_in[static_cast<size_t>(use.value)]), used = path(use.scope);
    const auto differs = std::ranges::mismatch(made, used).in2;
    return differs == used.end() ? use.behind : end_of[static_cast<size_t>(*differs)];
  };
  std::unordered_set<ValueId> seen(graph.inputs.begin(), graph.inputs.end());
  for (const Operand& output : graph.outputs) seen.insert(output.value);
  for (size_t i = graph.nodes.size(); i-- > 0;)
    for (const Use& use : uses[i])
      if (seen.insert(use.value).second) graph.nodes[goes(use)].drops.push_back(use.value);
}

}  // namespace metaprof::script
