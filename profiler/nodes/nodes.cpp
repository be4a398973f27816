#include "profiler/nodes/nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "profiler/storages/saved.h"
#include "profiler/storages/storage_tensors.h"

namespace metaprof {
namespace {

// What is known of a storage after both passes.
struct Life {
  int32_t born_in = kNoNode;  // group
  int32_t freed_in = kNoNode;
  bool born_forward = false, born_backward = false, born_again = false;
  bool freed_backward = false;
  bool is_gradient = false;          // of a parameter
  bool alive = false;                // now, while passing
  bool alive_after_forward = false;  // of those on the device
  bool read_outside = false;         // by another group than the one in which it was born, in the forward
};

class Pass {
 public:
  Pass(const Trace& trace, Device device, const NodeGraph& graph, const std::vector<int32_t>& group_of,
       int32_t groups, const Rates& rates)
      : trace_(trace),
        device_(device),
        graph_(graph),
        group_of_(group_of),
        rates_(rates),
        tensors_(tensors_of_storages(trace)),
        lives_(trace.storages.size()),
        is_state_(trace.storages.size()) {
    profile_.rows.resize(static_cast<size_t>(groups));
    for (const ParameterRecord& parameter : trace.parameters) {
      is_state_[parameter.storage] = true;
      if (parameter.buffer) buffers_.insert(parameter.storage);
    }
  }

  NodeProfile run() {
    name_rows();
    live_through(0, graph_.forward.begin);
    profile_.live_before_forward = live_;
    visit_all(graph_.forward, false);
    profile_.live_after_forward = live_;
    for (Life& life : lives_) life.alive_after_forward = life.alive;
    keep_what_is_saved();
    list_outputs();
    live_through(graph_.forward.end, graph_.backward.begin);
    profile_.live_before_backward = live_;
    visit_all(graph_.backward, true);
    profile_.live_after_backward = live_;
    settle_backward();
    add_costs();
    return std::move(profile_);
  }

 private:
  bool on_device(uint32_t storage) const { return trace_.storages[storage].device == device_; }
  Bytes bytes(uint32_t storage) const { return trace_.storages[storage].bytes; }
  int32_t group(size_t event) const {
    const int32_t node = graph_.owner[event];
    return node == kNoNode ? kNoNode : group_of_[size_t(node)];
  }
  NodeRow& row(int32_t group) { return group == kNoNode ? profile_.outside : profile_.rows[size_t(group)]; }

  void name_rows() {
    profile_.outside.name = "(outside of nodes)";
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (group_of_[i] == kNoNode) continue;
      NodeRow& named = row(group_of_[i]);
      named.node = graph_.nodes[i];
      named.name = node_name(trace_, graph_.nodes[i]);
      named.module = trace_.text(graph_.nodes[i].module);
      named.op = trace_.text(graph_.nodes[i].op);
      if (graph_.nodes[i].kind == ModelNode::Kind::input)
        lives_[graph_.nodes[i].storage].born_in = group_of_[i];
    }
  }

  // Keeps count of the live bytes; true if the event changed them.
  bool count_live(const Event& event) {
    if (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free) return false;
    if (!on_device(event.id)) return false;
    const bool born = event.kind == Event::Kind::alloc;
    lives_[event.id].alive = born;
    live_ += born ? bytes(event.id) : Bytes{} - bytes(event.id);
    return true;
  }

  void live_through(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) count_live(trace_.events[i]);
  }

  void visit_all(EventRange range, bool backward) {
    int32_t now = kNoNode;
    bool again_now = false, visiting = false;
    for (size_t i = range.begin; i < range.end; ++i) {
      const Event& event = trace_.events[i];
      const int32_t owner = group(i);
      const bool again = graph_.again[i];
      if (owner != now || again != again_now || !visiting) {
        now = owner;
        again_now = again;
        visiting = true;
        begin_visit(owner, backward, again);
      }
      if (event.kind == Event::Kind::category) note_category(event);
      if (event.kind == Event::Kind::call && !backward) note_reads(trace_.calls[event.id], owner);
      if (event.kind == Event::Kind::end && !backward) note_results(event, owner);
      if (backward && !again && owner != kNoNode) row(owner).has_backward = true;
      if (count_live(event)) {
        note_change(event, owner, backward, again);
        note_fullest();
      }
    }
    for (const NodeVisit& visit : profile_.visits) {
      if (visit.backward != backward) continue;
      NodeRow& visited = row(visit.node);
      Bytes& most = backward ? visited.bwd_mem_tmp : visited.fwd_mem_peak;
      most = std::max(most, visit.most - visit.live);
    }
  }

  void begin_visit(int32_t owner, bool backward, bool again) {
    NodeVisit& visit = profile_.visits.emplace_back();
    visit.node = owner;
    visit.backward = backward;
    visit.again = again;
    visit.live = visit.most = live_;
    visit.gradients = live_gradients_;
    visit.activations = live_activations_;
    temporary_at_begin_ = live_temporary_;
  }

  void note_fullest() {
    NodeVisit& visit = profile_.visits.back();
    if (live_ <= visit.most) return;
    visit.most = live_;
    visit.activations = live_activations_;
    visit.activation_gradients = live_temporary_ - temporary_at_begin_;
  }

  // The sum to which a storage belongs now; null: to none.
  Bytes* kind_of(uint32_t storage) {
    const Life& life = lives_[storage];
    if (!is_result(storage)) return nullptr;
    if (life.is_gradient) return &live_gradients_;
    if (life.born_forward || life.born_again) return &live_activations_;
    return life.born_backward ? &live_temporary_ : nullptr;
  }

  void note_category(const Event& event) {
    Life& life = lives_[event.id];
    const bool gradient = static_cast<Category>(event.detail) == Category::gradient;
    if (!life.alive || !on_device(event.id) || life.is_gradient == gradient) return;
    if (Bytes* kind = kind_of(event.id)) *kind -= bytes(event.id);
    life.is_gradient = gradient;
    if (Bytes* kind = kind_of(event.id)) *kind += bytes(event.id);
  }

  void note_change(const Event& event, int32_t owner, bool backward, bool again) {
    Life& life = lives_[event.id];
    if (event.kind == Event::Kind::alloc) {
      life.born_in = owner;
      life.born_forward = !backward;
      life.born_backward = backward;
      life.born_again = again;
      if (Bytes* kind = kind_of(event.id)) *kind += bytes(event.id);
    } else {
      if (Bytes* kind = kind_of(event.id)) *kind -= bytes(event.id);
      life.freed_in = owner;
      life.freed_backward = backward;
      // Something from before the forward that it lets go.
      if (!backward && !life.born_forward) row(owner).fwd_mem_other -= bytes(event.id);
    }
  }

  void note_reads(const CallRecord& call, int32_t owner) {
    for (uint32_t k = 0; k < call.inputs; ++k) {
      const TensorRecord& tensor = trace_.tensors[call.first_tensor + k];
      if (tensor.storage == 0) continue;
      Life& life = lives_[tensor.storage];
      if (life.born_in != owner) life.read_outside = true;
      if (owner == kNoNode) continue;
      if (is_state_[tensor.storage]) {
        if (on_device(tensor.storage) && !buffers_.contains(tensor.storage) &&
            read_state_.insert(tensor.storage).second)
          row(owner).parameters += bytes(tensor.storage);
        continue;
      }
      add_read(owner, maker_of(tensor));
    }
  }

  void add_read(int32_t owner, int32_t maker) {
    if (maker == kNoNode || maker == owner) return;
    auto& reads = row(owner).reads;
    if (std::find(reads.begin(), reads.end(), maker) == reads.end()) reads.push_back(maker);
  }

  // The last node with a result of this shape in this storage; else the one in which it was born.
  int32_t maker_of(const TensorRecord& tensor) const {
    const auto found = results_.find(tensor.storage);
    if (found != results_.end())
      for (size_t i = found->second.size(); i-- > 0;)
        if (std::ranges::equal(trace_.shape(*found->second[i].tensor), trace_.shape(tensor)))
          return found->second[i].group;
    return lives_[tensor.storage].born_in;
  }

  void note_results(const Event& event, int32_t owner) {
    if (owner == kNoNode || event.id >= trace_.calls.size()) return;
    const CallRecord& call = trace_.calls[event.id];
    for (uint32_t k = 0; k < call.outputs; ++k) {
      const TensorRecord& tensor = trace_.tensors[call.first_tensor + call.inputs + k];
      if (tensor.storage == 0 || is_state_[tensor.storage]) continue;
      results_[tensor.storage].push_back({&tensor, owner});
      if (lives_[tensor.storage].born_in != owner) aliases_[owner].insert(tensor.storage);
    }
  }

  NodeTensor describe(uint32_t storage) const {
    NodeTensor tensor;
    tensor.storage = storage;
    tensor.bytes = bytes(storage);
    tensor.maker = lives_[storage].born_in;
    if (const TensorRecord* record = tensors_[storage]) {
      const SizesView shape = trace_.shape(*record);
      tensor.shape = Sizes(shape.begin(), shape.end());
      tensor.dtype = record->dtype;
    }
    return tensor;
  }

  void keep_what_is_saved() {
    std::vector<uint32_t> order;  // saved storages
    std::unordered_map<uint32_t, std::vector<int32_t>> savers;
    for (const SavedStorage& held : held_by_first_forward(trace_, device_)) {
      const int32_t node = graph_.of_autograd_node[held.node];
      const int32_t saver = node == kNoNode ? kNoNode : group_of_[size_t(node)];
      auto [found, is_new] = savers.try_emplace(held.storage);
      if (is_new) order.push_back(held.storage);
      if (std::find(found->second.begin(), found->second.end(), saver) == found->second.end())
        found->second.push_back(saver);
    }
    std::sort(order.begin(), order.end());
    for (const uint32_t storage : order) {
      const int32_t maker = lives_[storage].born_in;
      NodeTensor tensor = describe(storage);
      tensor.kept = true;
      saved_.insert(storage);
      profile_.saved += tensor.bytes;
      bool by_others = false;
      for (const int32_t saver : savers[storage]) {
        if (saver == maker) continue;
        by_others = true;
        row(saver).fwd_in.push_back(tensor);
      }
      NodeRow& made = row(maker);
      if (by_others) {
        made.fwd_mem_out += tensor.bytes;
        made.fwd_out.push_back(std::move(tensor));
      } else {
        made.fwd_mem_tmp += tensor.bytes;
        made.fwd_tmp.push_back(std::move(tensor));
      }
    }
  }

  // Whether what stays alive is a result, and not something that a library or autocast keeps.
  bool is_result(uint32_t storage) const {
    const Category category = trace_.storages[storage].category;
    return category != Category::workspace && category != Category::cached_copy;
  }

  void list_outputs() {
    for (uint32_t id = 1; id < trace_.storages.size(); ++id) {
      const Life& life = lives_[id];
      if (!life.born_forward || saved_.contains(id)) continue;
      const bool held = life.alive_after_forward;
      NodeRow& made = row(life.born_in);
      if (held && !is_result(id)) {
        made.fwd_mem_other += bytes(id);
        continue;
      }
      if (!held && !life.read_outside) continue;
      NodeTensor tensor = describe(id);
      tensor.kept = held;
      if (held) {
        profile_.held += tensor.bytes;
        made.fwd_mem_out += tensor.bytes;
      }
      made.fwd_out.push_back(std::move(tensor));
    }
    for (const auto& [owner, storages] : aliases_) {
      for (const uint32_t storage : storages) {
        if (!on_device(storage)) continue;
        NodeTensor tensor = describe(storage);
        tensor.alias = true;
        tensor.kept = saved_.contains(storage);
        row(owner).fwd_out.push_back(std::move(tensor));
      }
    }
    for (NodeRow& row : profile_.rows) {
      if (row.node.kind != ModelNode::Kind::input || !row.fwd_out.empty()) continue;
      row.fwd_out.push_back(describe(row.node.storage));
    }
  }

  void settle_backward() {
    for (uint32_t id = 1; id < trace_.storages.size(); ++id) {
      const Life& life = lives_[id];
      if (life.freed_backward && (!life.born_backward || life.freed_in != life.born_in))
        row(life.freed_in).bwd_mem_freed += bytes(id);
      if (!life.born_backward) continue;
      if (life.freed_backward && life.freed_in == life.born_in) continue;
      NodeRow& made = row(life.born_in);
      if (life.born_again) {
        made.recomputed += bytes(id);
      } else if (life.is_gradient) {
        made.bwd_mem_grad += bytes(id);
      } else {
        (is_result(id) ? made.bwd_mem_out : made.bwd_mem_other) += bytes(id);
      }
    }
  }

  void add_costs() {
    const std::vector<CallCost> costs = call_costs(trace_, rates_);
    for (const EventRange range : {graph_.forward, graph_.backward}) {
      for (size_t i = range.begin; i < range.end; ++i) {
        if (trace_.events[i].kind != Event::Kind::call) continue;
        const CallCost& cost = costs[trace_.events[i].id];
        NodeRow& paid_by = row(group(i));
        switch (trace_.calls[trace_.events[i].id].phase) {
          case Phase::forward:
            paid_by.fwd_flop += cost.all;
            paid_by.fwd_flop_counted += cost.counted;
            paid_by.fwd_time += cost.seconds;
            break;
          case Phase::recompute:
            paid_by.recompute_flop += cost.all;
            paid_by.recompute_time += cost.seconds;
            break;
          default:
            paid_by.bwd_flop += cost.all;
            paid_by.bwd_flop_counted += cost.counted;
            paid_by.bwd_time += cost.seconds;
        }
      }
    }
  }

  struct Result {
    const TensorRecord* tensor;
    int32_t group;
  };

  const Trace& trace_;
  const Device device_;
  const NodeGraph& graph_;
  const std::vector<int32_t>& group_of_;
  const Rates& rates_;
  const std::vector<const TensorRecord*> tensors_;
  std::vector<Life> lives_;
  std::vector<bool> is_state_;
  Bytes live_, live_gradients_, live_activations_, live_temporary_, temporary_at_begin_;
  std::unordered_set<uint32_t> buffers_, read_state_, saved_;
  std::unordered_map<uint32_t, std::vector<Result>> results_;  // by storage
  std::map<int32_t, std::set<uint32_t>> aliases_;              // by group
  NodeProfile profile_;
};

}  // namespace

bool NodeRow::is_alias() const {
  if (fwd_out.empty()) return false;
  return std::all_of(fwd_out.begin(), fwd_out.end(), [](const NodeTensor& tensor) { return tensor.alias; });
}

NodeProfile profile_groups(const Trace& trace, Device device, const NodeGraph& graph,
                           const std::vector<int32_t>& group_of, int32_t groups, const Rates& rates) {
  return Pass(trace, device, graph, group_of, groups, rates).run();
}

NodeProfile profile_nodes(const Trace& trace, Device device, Granularity granularity, const Rates& rates) {
  const NodeGraph graph = node_graph(trace, device, granularity);
  std::vector<int32_t> itself(graph.nodes.size());
  for (size_t i = 0; i < itself.size(); ++i) itself[i] = static_cast<int32_t>(i);
  NodeProfile profile =
      profile_groups(trace, device, graph, itself, static_cast<int32_t>(itself.size()), rates);
  profile.granularity = granularity;
  return profile;
}

}  // namespace metaprof
