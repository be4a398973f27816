#include "profiler/nodes/node_graph.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_set>

#include "profiler/storages/cursor.h"

namespace metaprof {
namespace {

EventRange range_of(const Trace& trace, Phase phase) {
  const std::span<const Event> part = first_part(trace, phase);
  if (part.empty()) return {};
  const auto begin = static_cast<size_t>(part.data() - trace.events.data());
  return {begin, begin + part.size()};
}

class Builder {
 public:
  Builder(const Trace& trace, Device device, Granularity granularity)
      : trace_(trace), device_(device), granularity_(granularity) {
    graph_.forward = range_of(trace, Phase::forward);
    graph_.backward = range_of(trace, Phase::backward);
    graph_.owner.assign(trace.events.size(), kNoNode);
    graph_.again.assign(trace.events.size(), false);
    call_owner_.assign(trace.calls.size(), kNoNode);
    allocates_.assign(trace.calls.size(), false);
    for (const StorageRecord& storage : trace.storages)
      if (storage.call != 0) allocates_[storage.call - 1] = true;
  }

  NodeGraph build() {
    find_inputs();
    find_outer_modules();
    for (size_t i = graph_.forward.begin; i < graph_.forward.end; ++i) pass_forward(i);
    find_leading_nodes();
    count_.clear();
    for (size_t i = graph_.backward.begin; i < graph_.backward.end; ++i) pass_backward(i);
    graph_.of_autograd_node.resize(trace_.nodes.size());
    for (uint32_t node = 0; node < trace_.nodes.size(); ++node)
      graph_.of_autograd_node[node] = owner_of_autograd_node(node);
    return std::move(graph_);
  }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // module, operator

  void find_inputs() {
    std::unordered_set<uint32_t> read;
    for (size_t i = graph_.forward.begin; i < graph_.forward.end; ++i) {
      if (trace_.events[i].kind != Event::Kind::call) continue;
      const CallRecord& call = trace_.calls[trace_.events[i].id];
      for (uint32_t k = 0; k < call.inputs; ++k) read.insert(trace_.tensors[call.first_tensor + k].storage);
    }
    for (uint32_t id = 1; id < trace_.storages.size(); ++id) {
      const StorageRecord& storage = trace_.storages[id];
      if (storage.category != Category::input || storage.device != device_ || !read.contains(id)) continue;
      graph_.nodes.push_back({.kind = ModelNode::Kind::input, .storage = id});
    }
  }

  void find_outer_modules() {
    std::vector<uint32_t> open;
    for (size_t i = graph_.forward.begin; i < graph_.forward.end; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == Event::Kind::leave && !open.empty()) open.pop_back();
      if (event.kind != Event::Kind::enter) continue;
      if (!open.empty()) outer_.insert(open.back());
      open.push_back(event.id);
    }
  }

  // A node's call that is going on.
  struct Open {
    int32_t node = kNoNode;
    bool is_module = false;
    uint32_t path = 0;  // of a module
    size_t frames = 0;  // of a call: how many are open, it included
  };

  void begin(Open& open, bool is_module, uint32_t path, uint32_t op) {
    const Key key{path, op};
    const int32_t repeats = count_[key]++;
    auto& known = by_key_[key];
    if (static_cast<size_t>(repeats) == known.size()) {
      known.push_back(static_cast<int32_t>(graph_.nodes.size()));
      graph_.nodes.push_back({.kind = is_module ? ModelNode::Kind::module : ModelNode::Kind::call,
                              .module = path,
                              .op = op,
                              .repeats = repeats});
    }
    open = {known[size_t(repeats)], is_module, path, frames_.size()};
  }

  // The whole model is no node, even if it has no modules inside.
  bool is_leaf(uint32_t path) const { return path != 0 && !outer_.contains(path); }

  bool makes_node(uint32_t call) const {
    return granularity_ != Granularity::op || !trace_.calls[call].composite || allocates_[call];
  }

  // An event of a forward. Returns the node that it belongs to.
  int32_t step(Open& open, const Event& event) {
    const int32_t before = open.node;
    switch (event.kind) {
      case Event::Kind::enter:
        if (open.node == kNoNode && granularity_ == Granularity::module && is_leaf(event.id))
          begin(open, true, event.id, 0);
        break;
      case Event::Kind::leave:
        if (open.node != kNoNode && open.is_module && open.path == event.id) {
          open = {};
          return before;
        }
        break;
      case Event::Kind::call: {
        frames_.push_back(event.id);
        const CallRecord& call = trace_.calls[event.id];
        if (open.node == kNoNode && makes_node(event.id)) begin(open, false, call.module, call.op);
        call_owner_[event.id] = open.node;
        break;
      }
      case Event::Kind::end:
        if (open.node != kNoNode && !open.is_module && frames_.size() == open.frames) open = {};
        if (!frames_.empty()) frames_.pop_back();
        return before;
      default: break;
    }
    return open.node;
  }

  void pass_forward(size_t i) {
    const Event& event = trace_.events[i];
    if (event.kind == Event::Kind::node) evaluating_.push_back({event.id, frames_.size()});
    const int32_t owner = step(forward_, event);
    graph_.owner[i] = owner;
    // A number of the program that becomes a tensor on the host is made for the call that comes next.
    if (owner == kNoNode && event.kind == Event::Kind::alloc) numbers_.push_back(i);
    if (owner == kNoNode) return;
    for (const size_t number : numbers_) graph_.owner[number] = owner;
    numbers_.clear();
  }

  struct Evaluation {
    uint32_t node;
    size_t frames;  // open calls around it
  };

  // Calls of formulas and calls that are computed again both stand within evaluations; the latter are of the
  // phase `recompute`, or of modules that are entered again.
  void pass_backward(size_t i) {
    const Event& event = trace_.events[i];
    if (event.kind == Event::Kind::node) {
      evaluating_.push_back({event.id, frames_.size()});
      graph_.owner[i] = current();
      return;
    }
    const bool ends_evaluation =
        event.kind == Event::Kind::end && !evaluating_.empty() && frames_.size() == evaluating_.back().frames;
    if (ends_evaluation) {
      graph_.owner[i] = current();
      evaluating_.pop_back();
      return;
    }
    const bool formula = event.kind == Event::Kind::call && again_.node == kNoNode &&
                         trace_.calls[event.id].phase != Phase::recompute;
    if (formula) {
      frames_.push_back(event.id);
      call_owner_[event.id] = current();
      graph_.owner[i] = current();
      return;
    }
    const int32_t repeated = step(again_, event);
    graph_.again[i] = repeated != kNoNode;
    graph_.owner[i] = repeated != kNoNode ? repeated : current();
  }

  // Of the innermost evaluation.
  int32_t current() const {
    return evaluating_.empty() ? kNoNode : owner_of_autograd_node(evaluating_.back().node);
  }

  void find_leading_nodes() {
    leading_.assign(trace_.nodes.size(), UINT32_MAX);
    for (uint32_t node = 0; node < trace_.nodes.size(); ++node) {
      const NodeRecord& record = trace_.nodes[node];
      for (uint32_t k = 0; k < record.edge_count; ++k) {
        const uint32_t next = trace_.edges[record.first_edge + k];
        if (next != 0 && leading_[next - 1] == UINT32_MAX) leading_[next - 1] = node;
      }
    }
  }

  int32_t owner_of_autograd_node(uint32_t node) const {
    for (int hops = 0; hops < 8; ++hops) {
      if (const uint32_t call = trace_.nodes[node].call; call != 0) return call_owner_[call - 1];
      if (leading_[node] == UINT32_MAX) return kNoNode;
      node = leading_[node];
    }
    return kNoNode;
  }

  const Trace& trace_;
  const Device device_;
  const Granularity granularity_;
  NodeGraph graph_;
  std::set<uint32_t> outer_;  // texts of paths of modules that call modules
  std::map<Key, std::vector<int32_t>> by_key_;
  std::map<Key, int32_t> count_;     // of this pass
  std::vector<uint32_t> frames_;     // open calls
  std::vector<size_t> numbers_;      // events that belong to the node which begins next
  std::vector<bool> allocates_;      // by call: it makes storages itself
  std::vector<int32_t> call_owner_;  // by call
  std::vector<uint32_t> leading_;    // by autograd node: the first that leads to it
  std::vector<Evaluation> evaluating_;
  Open forward_, again_;
};

}  // namespace

std::string_view to_string(Granularity granularity) {
  switch (granularity) {
    case Granularity::module: return "module";
    case Granularity::function: return "function";
    default: return "operator";
  }
}

std::optional<Granularity> granularity_named(std::string_view word) {
  for (const Granularity granularity : {Granularity::module, Granularity::function, Granularity::op})
    if (word == to_string(granularity)) return granularity;
  return std::nullopt;
}

NodeGraph node_graph(const Trace& trace, Device device, Granularity granularity) {
  return Builder(trace, device, granularity).build();
}

std::string node_name(const Trace& trace, const ModelNode& node) {
  std::string name;
  const std::string_view module = trace.text(node.module);
  switch (node.kind) {
    case ModelNode::Kind::input: {
      const std::string_view input = trace.text(trace.storages[node.storage].name);
      name = fmt::format("input {}", input.empty() ? fmt::format("{}", node.storage) : input);
      break;
    }
    case ModelNode::Kind::module: name = module.empty() ? "(root)" : module; break;
    case ModelNode::Kind::call: {
      std::string_view op = trace.text(node.op);
      if (const size_t colons = op.find("::"); op.starts_with("aten::")) op.remove_prefix(colons + 2);
      name = module.empty() ? std::string(op) : fmt::format("{}: {}", module, op);
      break;
    }
  }
  if (node.repeats > 0) name += fmt::format("#{}", node.repeats + 1);
  return name;
}

}  // namespace metaprof
