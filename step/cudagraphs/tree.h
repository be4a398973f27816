#pragma once
// A tree of recorded CUDA graphs that share one pool, as the framework's tree manager keeps it
// (torch/_inductor/cudagraph_trees.py): which call of a function warms up, records, replays or runs eagerly.
//
// A node is one recording of a function; its children are recordings of functions that were called while its
// outputs, or those of its ancestors, were alive. What a graph writes has a fixed address, so that a recording is
// good for a call only where the addresses of its fixed inputs, and who is dead and alive, are the same again.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "step/cudagraphs/mutation_kind.h"

namespace metaprof {

/// Memory of a tensor: alive while somebody holds it. Several may have one address, one after the other.
struct GraphMemory {
  uint64_t address = 0;
};
using MemoryHandle = std::shared_ptr<const GraphMemory>;
using MemoryHandles = std::vector<MemoryHandle>;

using FunctionId = int;
using GraphNodeId = int;
inline constexpr GraphNodeId kNoGraphNode = -1;

/// What a compiler hands over to be captured.
struct GraphFunction {
  enum class Part : uint8_t { inference, forward, backward };
  Part part = Part::inference;
  size_t inputs = 0;
  std::vector<size_t> fixed;    ///< inputs whose addresses stay: parameters, buffers
  std::vector<size_t> written;  ///< inputs that it writes to
};

/// Who runs functions on memory. Handles that it is given are the caller's last ones, where the caller has no
/// other use for them.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// Outside the pool.
  virtual MemoryHandles run_eagerly(FunctionId function, MemoryHandles inputs) = 0;
  /// In the pool, on its stream.
  virtual MemoryHandles warm_up(FunctionId function, MemoryHandles inputs) = 0;
  /// Records and runs. Inputs that are `copied` go into buffers of the pool first.
  virtual MemoryHandles record(GraphNodeId node, FunctionId function, MemoryHandles inputs,
                               const std::vector<bool>& copied) = 0;
  /// Copies inputs and launches the graph; the outputs have the addresses of the recording.
  virtual MemoryHandles replay(GraphNodeId node, MemoryHandles inputs) = 0;
  /// The pool becomes what it was when `node` had been recorded, less the outputs at these addresses, which have
  /// died since.
  virtual void resume(GraphNodeId node, const std::vector<uint64_t>& dead) = 0;
  /// Lets go of handles whose memory has died.
  virtual void notice_deaths() {}
  /// A new generation begins: outputs of the last one that are still held lose their memory.
  virtual void overwrite(const std::vector<uint64_t>& addresses) = 0;
};

struct GraphTreeCounters {
  int64_t warmups = 0, recordings = 0, replays = 0, eager = 0;
  int64_t full_checks = 0;        ///< of what is written to
  int64_t checkpoints = 0;        ///< states of the pool that were resumed
  int64_t skips = 0;              ///< functions that were given up ("cudagraph_skips")
  int64_t non_static_inputs = 0;  ///< over all recordings ("cudagraph_recorded_non_static_inputs")
};

class GraphTree {
 public:
  struct Options {
    /// A function that is recorded again more often than this after the same node, because addresses changed,
    /// runs eagerly from then on. Nothing: it may be recorded for ever.
    std::optional<int> most_rerecordings = 128;
  };
  /// One recording, for who shows the tree.
  struct Node {
    FunctionId function = 0;
    GraphNodeId parent = kNoGraphNode;
    bool warm_up = false;                ///< a run in the pool that was not recorded
    size_t copied = 0;                   ///< inputs that each replay copies
    std::vector<MutationKind> mutation;  ///< per input
    int64_t replays = 0;
  };

  explicit GraphTree(GraphRunner& runner) : GraphTree(runner, Options()) {}
  GraphTree(GraphRunner& runner, Options options) : runner_(runner), options_(options) {}

  FunctionId add(GraphFunction function);
  /// The program calls a compiled model again: outputs of the call before may lose their memory.
  void begin_generation() { ++generation_; }
  /// Runs the function in whatever way is right now. Error: an output that died while the graph was recorded is
  /// held by somebody in a replay.
  MemoryHandles run(FunctionId function, MemoryHandles inputs);

  const GraphTreeCounters& counters() const { return counters_; }
  std::vector<Node> nodes() const;
  /// What the function does to its inputs if it is called now.
  std::vector<MutationKind> kinds(FunctionId function, const MemoryHandles& inputs) const;

 private:
  enum class State : uint8_t { none, warming_up, recording, executing };
  enum class Match : uint8_t { fits, managed_moved, fixed_moved, still_alive };
  using Liveness = std::vector<std::vector<bool>>;  // per node of the path, per output
  struct Output {
    uint64_t address = 0;
    std::weak_ptr<const GraphMemory> memory;
    bool tracked = false;  // false: memory of a fixed input, which is not the pool's
  };
  struct Record {
    Node shown;
    std::map<FunctionId, std::vector<GraphNodeId>> children;
    std::vector<Output> outputs;
    std::vector<size_t> fixed, managed;  // inputs
    std::vector<uint64_t> addresses;     // of inputs; 0: copied, by a recording alone
    std::vector<bool> passed_on;         // inputs that are an output, too
    std::vector<std::pair<size_t, size_t>> dead_before, dead_after;
    Liveness alive_after;
  };

  MemoryHandles run_function(FunctionId function, MemoryHandles inputs);
  MemoryHandles run_warm_up(FunctionId function, MemoryHandles inputs);
  MemoryHandles run_eagerly(FunctionId function, MemoryHandles inputs);
  MemoryHandles record(FunctionId function, MemoryHandles inputs);
  MemoryHandles replay(GraphNodeId node, MemoryHandles inputs);
  std::optional<MemoryHandles> run_known(FunctionId function, MemoryHandles& inputs);

  GraphNodeId add_node(FunctionId function, const MemoryHandles& inputs, bool warm_up);
  void keep_outputs(Record& node, const MemoryHandles& outputs);
  std::vector<GraphNodeId>& children_of(GraphNodeId node, FunctionId function);
  Match match(const Record& node, const MemoryHandles& inputs) const;
  bool writes_to_unmanaged(FunctionId function, const MemoryHandles& inputs);
  bool gives_up(FunctionId function) const;

  std::vector<GraphNodeId> path() const;  // from the root to the current node
  Liveness liveness() const;
  bool is_managed(uint64_t address) const;
  bool all_outputs_are_dead() const;
  bool may_begin_anew() const;
  void try_to_end();
  void forget_outputs();
  void checkpoint();

  GraphRunner& runner_;
  Options options_;
  std::vector<GraphFunction> functions_;
  std::vector<Record> nodes_;
  std::map<FunctionId, std::vector<GraphNodeId>> roots_;
  std::vector<bool> warm_, warned_;  // per function
  std::map<std::pair<GraphNodeId, FunctionId>, bool> unmanaged_;
  std::map<std::pair<GraphNodeId, FunctionId>, int> rerecordings_;
  State state_ = State::none;
  GraphNodeId current_ = kNoGraphNode;
  int64_t generation_ = 0, current_generation_ = -1;
  bool backward_is_pending_ = false;
  GraphTreeCounters counters_;
};

}  // namespace metaprof
