// How many steps a captured program takes, and of how many micro-batches.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "program/edits/rewriting.h"
#include "program/edits/variants.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr size_t kStep = 1, kMicro = 2;  // operands of step::phase
constexpr size_t kNamedValue = 2;        // operand of step::name

bool is_phase(const GraphNode& node, std::string_view name) {
  return is_step(node, "phase") && text_operand(node, 0) == name;
}

// The forward and backward of a step, which micro-batches repeat.
struct Pass {
  size_t begin = 0, end = 0;  // nodes
};

class Accumulation {
 public:
  Accumulation(Program& program, int count) : program_(program), graph_(program.graph), count_(count) {}

  void run() {
    const std::vector<Pass> passes = find();
    std::vector<size_t> place;
    size_t next = 0;
    for (const Pass& pass : passes) {
      while (next < pass.begin) keep(next++, place);
      const size_t first = nodes_.size();
      while (next < pass.end) keep(next++, place);
      set_micro(first, 0);
      for (int micro = 1; micro < count_; ++micro) repeat(pass, micro);
    }
    while (next < graph_.nodes.size()) keep(next++, place);
    place.push_back(nodes_.size());
    replace_nodes(graph_, std::move(nodes_), place);
    graph_.checkpoints.insert(graph_.checkpoints.end(), repeated_.begin(), repeated_.end());
    std::ranges::sort(graph_.checkpoints, {}, &CheckpointRegion::begin);
  }

 private:
  std::vector<Pass> find() const {
    std::vector<Pass> passes;
    bool open = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (!is_step(node, "phase")) continue;
      if (integer_operand(node, kMicro, -1) != -1)
        fail("--accumulate: {} accumulates gradients already", program_.origin);
      if (is_phase(node, "backward")) continue;
      if (open) passes.back().end = i;
      open = is_phase(node, "forward");
      if (open) passes.push_back({i, graph_.nodes.size()});
    }
    for (const Pass& pass : passes)
      if (std::none_of(graph_.nodes.begin() + int64_t(pass.begin), graph_.nodes.begin() + int64_t(pass.end),
                       [](const GraphNode& node) { return is_step(node, "backward"); }))
        fail("--accumulate: {}: a step's backward does not follow its forward", program_.origin);
    if (passes.empty()) fail("--accumulate: {} has no forward", program_.origin);
    return passes;
  }

  // A call of the program itself; what it takes of repeated calls is what the last of them made.
  void keep(size_t i, std::vector<size_t>& place) {
    place.push_back(nodes_.size());
    GraphNode& node = nodes_.emplace_back(graph_.nodes[i]);
    const auto latest = [&](ValueId& value) {
      const auto found = latest_.find(value);
      if (found != latest_.end()) value = found->second;
    };
    for_each_argument(node, latest);
    for (ValueId& value : node.drops) latest(value);
  }

  void set_micro(size_t from, int micro) {
    for (size_t i = from; i < nodes_.size(); ++i)
      if (is_step(nodes_[i], "phase")) nodes_[i].operands[kMicro].constant = Value(int64_t{micro});
  }

  // The calls once more, with values of their own. A value that outlives its pass goes when the next one has made its
  // like, as a name does that is bound again.
  void repeat(const Pass& pass, int micro) {
    std::unordered_map<ValueId, ValueId> again;
    std::vector<char> outlives(graph_.values.size());
    for (size_t i = pass.begin; i < pass.end; ++i)
      for_each_result(graph_.nodes[i], [&](ValueId value) { outlives[size_t(value)] = true; });
    const std::vector<char> made = outlives;
    for (size_t i = pass.begin; i < pass.end; ++i)
      for (const ValueId value : graph_.nodes[i].drops) outlives[size_t(value)] = false;
    const size_t first = nodes_.size();
    std::vector<size_t> place;
    for (size_t i = pass.begin; i < pass.end; ++i) {
      place.push_back(nodes_.size());
      const GraphNode& original = graph_.nodes[i];
      if (is_step(original, "name") && !made[size_t(original.operands[kNamedValue].value)]) continue;
      nodes_.push_back(copy(original, made, outlives, again));
    }
    place.push_back(nodes_.size());
    set_micro(first, micro);
    for (const CheckpointRegion& region : graph_.checkpoints)
      if (region.begin >= pass.begin && region.end <= pass.end)
        repeated_.push_back({place[region.begin - pass.begin], place[region.end - pass.begin],
                             region.reentrant, region.whole, region.kept});
  }

  GraphNode copy(const GraphNode& original, const std::vector<char>& made, const std::vector<char>& outlives,
                 std::unordered_map<ValueId, ValueId>& again) {
    GraphNode node = original;
    for_each_argument(node, [&](ValueId& value) {
      const auto found = again.find(value), before = latest_.find(value);
      if (found != again.end())
        value = found->second;
      else if (before != latest_.end())  // an earlier pass made it
        value = before->second;
    });
    node.drops.clear();
    for_each_result(node, [&](ValueId& value) {
      const auto fresh = static_cast<ValueId>(graph_.values.size());
      ValueFacts facts = graph_.values[size_t(value)];
      facts.name.clear();
      graph_.values.push_back(std::move(facts));
      if (outlives[size_t(value)]) {
        const auto before = latest_.find(value);
        node.drops.push_back(before == latest_.end() ? value : before->second);
        latest_[value] = fresh;
      }
      again[value] = fresh;
      value = fresh;
    });
    for (const ValueId value : original.drops)  // what was made before went the first time
      if (value < ValueId(made.size()) && made[size_t(value)]) node.drops.push_back(again.at(value));
    return node;
  }

  Program& program_;
  Graph& graph_;
  const int count_;
  std::vector<GraphNode> nodes_;
  std::vector<CheckpointRegion> repeated_;
  std::unordered_map<ValueId, ValueId> latest_;  // what outlives its pass, as its last repetition has it
};

}  // namespace

void keep_steps(Program& program, int64_t steps) {
  Graph& graph = program.graph;
  int64_t found = 0;
  std::vector<char> kept(graph.nodes.size(), true);
  bool after = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (is_step(node, "phase")) {
      const int64_t step = integer_operand(node, kStep, 0);
      found = std::max(found, step + 1);
      after |= step >= steps;
    }
    kept[i] = !after;
  }
  if (found < steps) fail("--steps {}: {} was captured from a run of {} steps", steps, program.origin, found);
  keep_nodes(graph, kept);
}

void accumulate(Program& program, int count) { Accumulation(program, count).run(); }

}  // namespace metaprof
