#pragma once
// Runs the functions of a tree of graphs on a session, and puts their memory into the pool that all graphs of the
// tree share (torch/_inductor/cudagraph_trees.py).

#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "meta/ops/rules/capture.h"
#include "step/compiled/aot/compiled_graph.h"
#include "step/cudagraphs/trace_blocks.h"
#include "step/cudagraphs/tree.h"

namespace metaprof {

/// Memory of a tensor in a session.
struct HeldStorage : GraphMemory {
  HeldStorage(uint64_t address, Ref<Storage> storage) : GraphMemory{address}, storage(std::move(storage)) {}
  mutable Ref<Storage> storage;  ///< null: somebody else holds it now
};

class PoolRunner final : public GraphRunner {
 public:
  /// The session's trace goes to the allocator event by event; both outlive the runner.
  PoolRunner(Session& session, Device device, CachingAllocator& allocator);

  /// Brings the tree's pool into being, by capturing nothing; once, before anything runs in it.
  void make_pool();
  /// The function whose number is the next. Outlives the runner.
  void add(const CompiledGraph& graph, bool runs_in_backward);
  MemoryHandle hold(Ref<Storage> storage);
  static const Ref<Storage>& storage_of(const MemoryHandle& memory);
  /// From here on the handle lives as long as the storage does.
  Ref<Storage> hand_over(MemoryHandle memory);
  /// Feeds what has happened to the allocator. False: memory ran out, and nothing is fed any more.
  bool catch_up();
  /// The first call that took an output whose memory a later generation had taken over: its index in the trace.
  std::optional<uint32_t> use_of_overwritten() const { return use_of_overwritten_; }
  /// What was asked for when memory ran out.
  std::optional<Bytes> out_of_memory() const;

  MemoryHandles run_eagerly(FunctionId function, MemoryHandles inputs) override;
  MemoryHandles warm_up(FunctionId function, MemoryHandles inputs) override;
  MemoryHandles record(GraphNodeId node, FunctionId function, MemoryHandles inputs,
                       const std::vector<bool>& copied) override;
  MemoryHandles replay(GraphNodeId node, MemoryHandles inputs) override;
  void resume(GraphNodeId node, const std::vector<uint64_t>& dead) override;
  void notice_deaths() override { catch_up(); }
  void overwrite(const std::vector<uint64_t>& addresses) override;

 private:
  struct Function {
    const CompiledGraph* graph;
    bool in_backward;
  };
  void look_for_overwritten(const CallRecord& call, uint32_t index);
  MemoryHandles run_function(FunctionId function, MemoryHandles inputs);
  template <class Run>  // Run()
  void in_pool(const Run& run);
  void empty_cache();
  Ref<Storage> copy_into_pool(const Ref<Storage>& storage);

  Session& session_;
  CachingAllocator& allocator_;
  TraceBlocks blocks_;
  GraphGenerator generator_;                    // that captures begin with
  std::vector<GraphGenerator> own_generators_;  // of recordings
  std::vector<Function> functions_;
  std::map<GraphNodeId, std::vector<uint64_t>> outputs_;         // addresses
  std::unordered_multimap<uint32_t, MemoryHandle> handed_over_;  // by storage
  std::set<uint32_t> overwritten_;                               // storages
  std::optional<uint32_t> use_of_overwritten_;
  uint64_t last_address_ = 0;
  size_t fed_ = 0;
  bool failed_ = false;
};

}  // namespace metaprof
