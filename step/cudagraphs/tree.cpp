#include "step/cudagraphs/tree.h"

#include <algorithm>

#include "core/error.h"

namespace metaprof {

FunctionId GraphTree::add(GraphFunction function) {
  functions_.push_back(std::move(function));
  warm_.push_back(false);
  warned_.push_back(false);
  return static_cast<FunctionId>(functions_.size()) - 1;
}

std::vector<GraphTree::Node> GraphTree::nodes() const {
  std::vector<Node> shown;
  for (const Record& node : nodes_) shown.push_back(node.shown);
  return shown;
}

// A forward whose backward is to come keeps what it has made, also from the next generation.
MemoryHandles GraphTree::run(FunctionId function, MemoryHandles inputs) {
  MemoryHandles outputs = run_function(function, std::move(inputs));
  const GraphFunction::Part part = functions_[static_cast<size_t>(function)].part;
  if (part != GraphFunction::Part::inference) backward_is_pending_ = part == GraphFunction::Part::forward;
  return outputs;
}

MemoryHandles GraphTree::run_function(FunctionId function, MemoryHandles inputs) {
  // A path that executes is ended only when its next function is not known: checking is slow.
  if (state_ == State::recording || state_ == State::warming_up) try_to_end();
  if (!unmanaged_.contains({current_, function}))
    unmanaged_[{current_, function}] = writes_to_unmanaged(function, inputs);
  if (unmanaged_[{current_, function}] || gives_up(function)) return run_eagerly(function, std::move(inputs));
  // After a warm-up there are only warm-ups: memory is not where a recording would find it again.
  if (!warm_[static_cast<size_t>(function)] || state_ == State::warming_up) {
    if (state_ == State::executing) checkpoint();
    return run_warm_up(function, std::move(inputs));
  }
  if (state_ != State::recording)
    if (auto outputs = run_known(function, inputs)) return std::move(*outputs);
  return record(function, std::move(inputs));
}

// Replays a recording that fits, or finds that none may be made. Nothing: it is to be recorded.
std::optional<MemoryHandles> GraphTree::run_known(FunctionId function, MemoryHandles& inputs) {
  bool moved = false;
  for (const GraphNodeId child : children_of(current_, function)) {
    const Match found = match(nodes_[static_cast<size_t>(child)], inputs);
    if (found == Match::fits) return replay(child, std::move(inputs));
    moved |= found != Match::still_alive;
  }
  if (current_ != kNoGraphNode && roots_.contains(function)) {
    try_to_end();
    if (current_ == kNoGraphNode) return run_function(function, std::move(inputs));
  }
  if (!functions_[static_cast<size_t>(function)].written.empty()) {
    unmanaged_[{current_, function}] = writes_to_unmanaged(function, inputs);
    if (unmanaged_[{current_, function}]) return run_eagerly(function, std::move(inputs));
  }
  if (moved) {
    ++rerecordings_[{current_, function}];
    if (gives_up(function)) {
      ++counters_.skips;
      return run_eagerly(function, std::move(inputs));
    }
  }
  try_to_end();
  if (current_ != kNoGraphNode) checkpoint();
  return std::nullopt;
}

// ---- ways to run

MemoryHandles GraphTree::run_eagerly(FunctionId function, MemoryHandles inputs) {
  ++counters_.eager;
  return runner_.run_eagerly(function, std::move(inputs));
}

MemoryHandles GraphTree::run_warm_up(FunctionId function, MemoryHandles inputs) {
  ++counters_.warmups;
  warm_[static_cast<size_t>(function)] = true;
  const GraphNodeId id = add_node(function, inputs, /*warm_up=*/true);
  current_ = id;
  state_ = State::warming_up;
  current_generation_ = generation_;
  MemoryHandles outputs = runner_.warm_up(function, std::move(inputs));
  keep_outputs(nodes_[static_cast<size_t>(id)], outputs);
  return outputs;
}

MemoryHandles GraphTree::record(FunctionId function, MemoryHandles inputs) {
  ++counters_.recordings;
  const Liveness before = liveness();
  const Liveness promised =
      current_ == kNoGraphNode ? Liveness() : nodes_[static_cast<size_t>(current_)].alive_after;
  const GraphNodeId parent = current_, id = add_node(function, inputs, /*warm_up=*/false);
  children_of(parent, function).push_back(id);
  current_ = id;
  state_ = State::recording;
  current_generation_ = generation_;
  const auto differences = [](const Liveness& was, const Liveness& is) {
    std::vector<std::pair<size_t, size_t>> indices;
    for (size_t i = 0; i < was.size(); ++i)
      for (size_t j = 0; j < was[i].size(); ++j)
        if (was[i][j] != is[i][j]) indices.emplace_back(i, j);
    return indices;
  };
  std::vector<bool> copied(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) copied[i] = nodes_[static_cast<size_t>(id)].addresses[i] == 0;
  counters_.non_static_inputs += std::ranges::count(copied, true);
  MemoryHandles outputs = runner_.record(id, function, std::move(inputs), copied);
  Record& node = nodes_[static_cast<size_t>(id)];
  node.shown.copied = static_cast<size_t>(std::ranges::count(copied, true));
  node.dead_before = differences(promised, before);
  node.dead_after = differences(before, liveness());
  keep_outputs(node, outputs);
  node.alive_after = liveness();
  return outputs;
}

MemoryHandles GraphTree::replay(GraphNodeId id, MemoryHandles inputs) {
  Record& node = nodes_[static_cast<size_t>(id)];
  ++counters_.replays;
  ++node.shown.replays;
  // What died while the graph was recorded must be dead before it runs: it is about to be written over.
  for (const size_t i : node.managed)
    if (!node.passed_on[i]) inputs[i].reset();
  runner_.notice_deaths();
  const Liveness alive = liveness();
  for (const auto& [depth, output] : node.dead_after)
    if (alive[depth][output])
      fail("function {}: output {} of an earlier graph is still held, which died when the graph was recorded",
           node.shown.function, output);
  current_ = id;
  state_ = State::executing;
  current_generation_ = generation_;
  MemoryHandles outputs = runner_.replay(id, std::move(inputs));
  for (size_t i = 0; i < outputs.size(); ++i) node.outputs[i].memory = outputs[i];
  return outputs;
}

// ---- nodes

GraphNodeId GraphTree::add_node(FunctionId function, const MemoryHandles& inputs, bool warm_up) {
  const GraphFunction& facts = functions_[static_cast<size_t>(function)];
  Record node;
  node.shown = {
      .function = function, .parent = current_, .warm_up = warm_up, .mutation = kinds(function, inputs)};
  node.fixed = facts.fixed;
  node.addresses.resize(inputs.size());
  node.passed_on.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const bool fixed = std::ranges::find(facts.fixed, i) != facts.fixed.end();
    const bool managed = is_managed(inputs[i]->address);
    if (managed) node.managed.push_back(i);
    if (fixed || managed || warm_up) node.addresses[i] = inputs[i]->address;
  }
  nodes_.push_back(std::move(node));
  return static_cast<GraphNodeId>(nodes_.size()) - 1;
}

void GraphTree::keep_outputs(Record& node, const MemoryHandles& outputs) {
  for (const MemoryHandle& output : outputs) {
    Output kept;
    if (output) {
      kept = {.address = output->address, .memory = output, .tracked = true};
      for (size_t i = 0; i < node.addresses.size(); ++i) {
        if (node.addresses[i] != output->address) continue;
        const bool managed = std::ranges::find(node.managed, i) != node.managed.end();
        if (managed) node.passed_on[i] = true;
        if (!managed) kept.tracked = false;
      }
    }
    node.outputs.push_back(kept);
  }
}

std::vector<GraphNodeId>& GraphTree::children_of(GraphNodeId node, FunctionId function) {
  return node == kNoGraphNode ? roots_[function] : nodes_[static_cast<size_t>(node)].children[function];
}

GraphTree::Match GraphTree::match(const Record& node, const MemoryHandles& inputs) const {
  const auto same = [&](size_t i) {
    return inputs[i] && (node.addresses[i] == 0 || inputs[i]->address == node.addresses[i]);
  };
  if (!std::ranges::all_of(node.managed, same)) return Match::managed_moved;
  const Liveness alive = liveness();
  for (const auto& [depth, output] : node.dead_before)
    if (alive[depth][output]) return Match::still_alive;
  if (!std::ranges::all_of(node.fixed, same)) return Match::fixed_moved;
  return Match::fits;
}

// ---- what is written to

std::vector<MutationKind> GraphTree::kinds(FunctionId function, const MemoryHandles& inputs) const {
  const GraphFunction& facts = functions_[static_cast<size_t>(function)];
  std::vector<MutationKind> kinds(inputs.size(), MutationKind::none);
  for (const size_t i : facts.written) {
    const bool fixed = std::ranges::find(facts.fixed, i) != facts.fixed.end();
    const bool managed = inputs[i] && is_managed(inputs[i]->address);
    kinds[i] = fixed ? MutationKind::state : (managed ? MutationKind::earlier : MutationKind::unmanaged);
  }
  return kinds;
}

bool GraphTree::writes_to_unmanaged(FunctionId function, const MemoryHandles& inputs) {
  ++counters_.full_checks;
  const std::vector<MutationKind> found = kinds(function, inputs);
  if (std::ranges::find(found, MutationKind::unmanaged) == found.end()) return false;
  if (!warned_[static_cast<size_t>(function)]) ++counters_.skips;
  warned_[static_cast<size_t>(function)] = true;
  return true;
}

bool GraphTree::gives_up(FunctionId function) const {
  const auto found = rerecordings_.find({current_, function});
  return options_.most_rerecordings && found != rerecordings_.end() &&
         found->second > *options_.most_rerecordings;
}

// ---- the path

std::vector<GraphNodeId> GraphTree::path() const {
  std::vector<GraphNodeId> nodes;
  for (GraphNodeId id = current_; id != kNoGraphNode; id = nodes_[static_cast<size_t>(id)].shown.parent)
    nodes.push_back(id);
  std::ranges::reverse(nodes);
  return nodes;
}

GraphTree::Liveness GraphTree::liveness() const {
  Liveness alive;
  for (const GraphNodeId id : path()) {
    auto& outputs = alive.emplace_back();
    for (const Output& output : nodes_[static_cast<size_t>(id)].outputs)
      outputs.push_back(output.tracked && !output.memory.expired());
  }
  return alive;
}

// Of a recording every output counts, dead or not: its memory stays the pool's. Of a warm-up those that live.
bool GraphTree::is_managed(uint64_t address) const {
  for (const GraphNodeId id : path()) {
    const Record& node = nodes_[static_cast<size_t>(id)];
    for (const Output& output : node.outputs)
      if (output.tracked && output.address == address && (!node.shown.warm_up || !output.memory.expired()))
        return true;
  }
  return false;
}

bool GraphTree::all_outputs_are_dead() const {
  const Liveness alive = liveness();
  return std::ranges::none_of(alive, [](const std::vector<bool>& outputs) {
    return std::ranges::find(outputs, true) != outputs.end();
  });
}

bool GraphTree::may_begin_anew() const { return current_generation_ != generation_ && !backward_is_pending_; }

void GraphTree::try_to_end() {
  if (current_ == kNoGraphNode) return;
  if (may_begin_anew()) {
    if (state_ != State::executing) forget_outputs();
  } else if (!all_outputs_are_dead()) {
    return;
  }
  current_ = kNoGraphNode;
  state_ = State::none;
}

void GraphTree::forget_outputs() {
  std::vector<uint64_t> addresses;
  for (const GraphNodeId id : path()) {
    for (Output& output : nodes_[static_cast<size_t>(id)].outputs) {
      if (output.tracked && !output.memory.expired()) addresses.push_back(output.address);
      output.memory.reset();
    }
  }
  if (!addresses.empty()) runner_.overwrite(addresses);
}

void GraphTree::checkpoint() {
  ++counters_.checkpoints;
  const Liveness was = nodes_[static_cast<size_t>(current_)].alive_after, is = liveness();
  std::vector<uint64_t> dead;
  const std::vector<GraphNodeId> nodes = path();
  for (size_t i = 0; i < was.size(); ++i)
    for (size_t j = 0; j < was[i].size(); ++j)
      if (was[i][j] && !is[i][j]) dead.push_back(nodes_[static_cast<size_t>(nodes[i])].outputs[j].address);
  runner_.resume(current_, dead);
}

}  // namespace metaprof
