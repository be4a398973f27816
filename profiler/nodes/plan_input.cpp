#include "profiler/nodes/plan_input.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "meta/trace/module_path.h"
#include "profiler/modules/parameters.h"

namespace metaprof {
namespace {

// --- the chain
// ------------------------------------------------------------------------------------------------

struct Span {
  int32_t born = kNoNode, last_read = kNoNode;
};

// Of every storage with a gradient: the node in which it was born and the last that reads it.
std::map<uint32_t, Span> spans_of(const Trace& trace, const NodeGraph& graph) {
  std::set<uint32_t> state;
  for (const ParameterRecord& parameter : trace.parameters) state.insert(parameter.storage);
  std::map<uint32_t, Span> spans;
  for (size_t i = graph.forward.begin; i < graph.forward.end; ++i) {
    const Event& event = trace.events[i];
    const int32_t owner = graph.owner[i];
    if (event.kind == Event::Kind::alloc) spans[event.id].born = owner;
    if (event.kind != Event::Kind::call || owner == kNoNode) continue;
    const CallRecord& call = trace.calls[event.id];
    for (uint32_t k = 0; k < call.inputs; ++k) {
      const TensorRecord& tensor = trace.tensors[call.first_tensor + k];
      if (!tensor.requires_grad || tensor.storage == 0 || state.contains(tensor.storage)) continue;
      spans[tensor.storage].last_read = owner;
    }
  }
  return spans;
}

class ChainBuilder {
 public:
  ChainBuilder(const Trace& trace, Device device, const Rates& rates, const NodeGraph& graph)
      : trace_(trace), device_(device), rates_(rates), graph_(graph) {}

  Chain build() {
    const auto nodes = static_cast<int32_t>(graph_.nodes.size());
    int32_t first = 0;
    while (first < nodes && graph_.nodes[size_t(first)].kind == ModelNode::Kind::input) ++first;
    // How many storages go over the boundary behind each node, and one of them.
    std::vector<int> crossing(graph_.nodes.size());
    std::vector<uint32_t> boundary(graph_.nodes.size());
    for (const auto& [storage, span] : spans_of(trace_, graph_)) {
      if (span.born == kNoNode) continue;
      for (int32_t node = span.born; node < span.last_read; ++node) {
        ++crossing[size_t(node)];
        boundary[size_t(node)] = storage;
      }
    }
    std::vector<int32_t> group(graph_.nodes.size(), kNoNode);
    std::vector<uint32_t> handed_on;
    bool open = false;
    for (int32_t node = first; node < nodes; ++node) {
      if (!open) chain_.stages.emplace_back().first = node;
      chain_.stages.back().last = node;
      group[size_t(node)] = static_cast<int32_t>(chain_.stages.size()) - 1;
      const bool ends = node + 1 == nodes || is_cut(crossing, boundary, size_t(node));
      open = !ends;
      if (ends) handed_on.push_back(node + 1 == nodes ? 0 : boundary[size_t(node)]);
    }
    fill(group, handed_on);
    return std::move(chain_);
  }

 private:
  // A view, or what is written in place, belongs to the stage that made the storage: a stage that is run
  // again must find its input as it was.
  static bool is_cut(const std::vector<int>& crossing, const std::vector<uint32_t>& boundary, size_t node) {
    if (crossing[node] != 1) return false;
    return crossing[node + 1] != 1 || boundary[node + 1] != boundary[node];
  }

  void fill(const std::vector<int32_t>& group, const std::vector<uint32_t>& handed_on) {
    const NodeProfile groups =
        profile_groups(trace_, device_, graph_, group, static_cast<int32_t>(chain_.stages.size()), rates_);
    for (size_t i = 0; i < chain_.stages.size(); ++i) {
      const NodeRow& row = groups.rows[i];
      ChainStage& stage = chain_.stages[i];
      stage.name = node_name(trace_, graph_.nodes[size_t(stage.last)]);
      const uint32_t storage = handed_on[i];
      bool kept = false;
      if (storage != 0) {
        stage.x = trace_.storages[storage].bytes;
        for (const NodeTensor& tensor : row.fwd_out) kept |= tensor.storage == storage && tensor.kept;
      } else {
        for (const NodeTensor& tensor : row.fwd_out)
          if (tensor.kept) stage.x += tensor.bytes;
        kept = true;
      }
      stage.xbar = row.kept() + (kept ? Bytes{} : stage.x);
      stage.ftmp = std::max(Bytes{}, row.fwd_mem_peak - stage.xbar);
      stage.btmp = std::max(Bytes{}, row.bwd_mem_tmp - row.bwd_mem_out - row.bwd_mem_grad);
      stage.gradients = row.bwd_mem_grad;
      stage.parameters = row.parameters;
      stage.ftime = row.fwd_time;
      stage.btime = row.bwd_time;
    }
    for (const ModelNode& node : graph_.nodes)
      if (node.kind == ModelNode::Kind::input) chain_.input += trace_.storages[node.storage].bytes;
  }

  const Trace& trace_;
  const Device device_;
  const Rates& rates_;
  const NodeGraph& graph_;
  Chain chain_;
};

// --- modules
// --------------------------------------------------------------------------------------------------

std::string_view first_segments(std::string_view path, int depth) {
  if (depth == 0) return path.substr(0, 0);
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    end = path.find('.', i == 0 ? 0 : end + 1);
    if (end == path.npos) return path;
  }
  return path.substr(0, end);
}

class ModuleMeasurement {
 public:
  ModuleMeasurement(const Trace& trace, Device device, const Rates& rates, const NodeGraph& graph,
                    const NodeProfile& nodes)
      : trace_(trace), device_(device), rates_(rates), graph_(graph), nodes_(nodes) {}

  ModulePlans measure() {
    list_modules();
    for (int depth = 0; depth <= deepest_; ++depth) measure_depth(depth);
    count_parameters();
    order_backward();
    return std::move(plans_);
  }

 private:
  void list_modules() {
    for (size_t i = graph_.forward.begin; i < graph_.forward.end; ++i) {
      const Event& event = trace_.events[i];
      const std::string path(
          event.kind == Event::Kind::enter || event.kind == Event::Kind::leave ? trace_.text(event.id) : "");
      if (event.kind == Event::Kind::enter && !index_.contains(path)) {
        index_.emplace(path, plans_.modules.size());
        ModulePlan& plan = plans_.modules.emplace_back();
        plan.path = path;
        plan.is_leaf = true;
        plans_.forward_pre.push_back(path);
        deepest_ = std::max(deepest_, path_depth(path));
        if (const auto outer = index_.find(parent_path(path)); !path.empty() && outer != index_.end())
          plans_.modules[outer->second].is_leaf = false;
      }
      if (event.kind == Event::Kind::leave) {
        std::erase(plans_.forward_post, path);
        plans_.forward_post.push_back(path);
      }
    }
  }

  // Modules of one level of the tree are groups of nodes that do not overlap.
  void measure_depth(int depth) {
    std::vector<size_t> modules;
    std::unordered_map<size_t, int32_t> group_of_module;
    std::vector<int32_t> group(graph_.nodes.size(), kNoNode);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ModelNode& node = graph_.nodes[i];
      const std::string_view path = trace_.text(node.module);
      if (node.kind == ModelNode::Kind::input || path_depth(path) < depth) continue;
      const auto found = index_.find(first_segments(path, depth));
      if (found == index_.end()) continue;
      const auto [known, is_new] =
          group_of_module.try_emplace(found->second, static_cast<int32_t>(modules.size()));
      if (is_new) modules.push_back(found->second);
      group[i] = known->second;
      plans_.modules[found->second].nodes.push_back(static_cast<int32_t>(i));
    }
    const NodeProfile groups =
        profile_groups(trace_, device_, graph_, group, static_cast<int32_t>(modules.size()), rates_);
    for (size_t i = 0; i < modules.size(); ++i) fill(plans_.modules[modules[i]], groups.rows[i]);
    note_visits(groups, modules);
  }

  void fill(ModulePlan& plan, const NodeRow& row) {
    for (const NodeTensor& tensor : row.fwd_out)
      if (!tensor.alias) plan.outputs += tensor.bytes;
    plan.kept = row.fwd_mem_tmp;
    plan.forward_seconds = row.fwd_time;
    plan.backward_seconds = row.bwd_time;
    // Whatever its nodes read that was made elsewhere.
    const std::set<int32_t> own(plan.nodes.begin(), plan.nodes.end());
    std::set<uint32_t> storages;
    for (const int32_t node : plan.nodes)
      for (const int32_t read : nodes_.rows[size_t(node)].reads)
        if (!own.contains(read))
          for (const NodeTensor& tensor : nodes_.rows[size_t(read)].fwd_out)
            if (storages.insert(tensor.storage).second) plan.inputs += tensor.bytes;
    // All that is kept when its last node is over.
    const int32_t last = plan.nodes.back();
    for (int32_t node = 0; node <= last; ++node) plan.kept_after += nodes_.rows[size_t(node)].kept();
  }

  void note_visits(const NodeProfile& groups, const std::vector<size_t>& modules) {
    std::vector<Bytes> most(modules.size());
    std::vector<bool> seen(modules.size());
    for (const NodeVisit& visit : groups.visits) {
      if (!visit.backward || visit.again || visit.node == kNoNode) continue;
      const auto group = static_cast<size_t>(visit.node);
      ModulePlan& plan = plans_.modules[modules[group]];
      if (!seen[group]) plan.gradients_before = visit.gradients;
      if (!seen[group] || visit.most > most[group]) {
        most[group] = visit.most;
        plan.at_peak = visit.activations;
        plan.gradients_at_peak = visit.activation_gradients;
      }
      seen[group] = true;
    }
  }

  void count_parameters() {
    for (const ParameterRecord& parameter : trace_.parameters) {
      if (parameter.buffer || trace_.storages[parameter.storage].device != device_) continue;
      std::set<std::string, std::less<>> around;
      for (const std::string& name : parameter.names)
        for (const std::string_view path : enclosing_modules(parent_path(name))) around.emplace(path);
      const Bytes bytes{multiply(numel(parameter.sizes), element_size(parameter.dtype))};
      for (const std::string& path : around) {
        const auto found = index_.find(path);
        if (found == index_.end()) continue;
        plans_.modules[found->second].parameters += bytes;
        if (parameter.requires_grad) plans_.modules[found->second].trainable += bytes;
      }
    }
  }

  // A module's backward lasts from the first to the last visit of a node inside it.
  void order_backward() {
    struct Ends {
      size_t first = SIZE_MAX, last = 0;
    };
    std::vector<Ends> ends(plans_.modules.size());
    for (size_t i = 0; i < nodes_.visits.size(); ++i) {
      const NodeVisit& visit = nodes_.visits[i];
      if (!visit.backward || visit.again || visit.node == kNoNode) continue;
      for (const std::string_view path : enclosing_modules(nodes_.rows[size_t(visit.node)].module)) {
        const auto found = index_.find(path);
        if (found == index_.end()) continue;
        ends[found->second].first = std::min(ends[found->second].first, i);
        ends[found->second].last = i;
      }
    }
    std::vector<size_t> order;
    for (size_t i = 0; i < ends.size(); ++i)
      if (ends[i].first != SIZE_MAX) order.push_back(i);
    // Outer modules begin before and end after those inside them.
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ends[a].first < ends[b].first; });
    for (const size_t i : order) plans_.backward_pre.push_back(plans_.modules[i].path);
    std::sort(order.begin(), order.end(), [](size_t a, size_t b) { return a > b; });
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ends[a].last < ends[b].last; });
    for (const size_t i : order) plans_.backward_post.push_back(plans_.modules[i].path);
  }

  const Trace& trace_;
  const Device device_;
  const Rates& rates_;
  const NodeGraph& graph_;
  const NodeProfile& nodes_;
  ModulePlans plans_;
  std::map<std::string, size_t, std::less<>> index_;  // by path
  int deepest_ = 0;
};

std::vector<StorageLife> lives_of(const Trace& trace, Device device, const NodeGraph& graph) {
  std::vector<StorageLife> lives;
  std::unordered_map<uint32_t, size_t> alive;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const bool birth = event.kind == Event::Kind::alloc;
    if (event.kind == Event::Kind::category && alive.contains(event.id))
      lives[alive[event.id]].category = static_cast<Category>(event.detail);
    if ((!birth && event.kind != Event::Kind::free) || trace.storages[event.id].device != device) continue;
    if (const auto found = alive.find(event.id); found != alive.end()) {
      lives[found->second].end = i;
      alive.erase(found);
    }
    if (!birth || trace.bytes(event.id).count == 0) continue;
    alive[event.id] = lives.size();
    StorageLife& life = lives.emplace_back();
    life.storage = event.id;
    life.bytes = trace.bytes(event.id);
    life.category = static_cast<Category>(event.detail);
    life.begin = i;
    life.end = trace.events.size();
    life.born_in = graph.owner[i];
  }
  return lives;
}

}  // namespace

PlanInput plan_input(const Trace& trace, Device device, const Rates& rates) {
  PlanInput plan;
  plan.nodes = profile_nodes(trace, device, Granularity::function, rates);
  const NodeGraph functions = node_graph(trace, device, Granularity::function);
  plan.chain = ChainBuilder(trace, device, rates, functions).build();
  plan.modules = ModuleMeasurement(trace, device, rates, functions, plan.nodes).measure();
  plan.storages = lives_of(trace, device, functions);
  const Parameters parameters = parameters_of(trace);
  plan.parameters = parameters.all.bytes;
  plan.trainable = parameters.trainable.bytes;
  return plan;
}

}  // namespace metaprof
