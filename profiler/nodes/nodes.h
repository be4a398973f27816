#pragma once
// The per-node pass: what each node of a model (profiler/nodes/node_graph.h) keeps and needs. Bytes are what was
// asked for, on one device, of the first forward and the first backward. Parameters and buffers are never
// activations. A storage counts once, however many tensors show it: itself, a view, a detached alias.
//
// A storage is *saved* if some autograd node that the loss reaches keeps it when the first forward ends, and
// *held* if it is alive then without being saved: the loss, another output, what a checkpoint passes on.
//
//   fwd_in         saved inputs: storages from before the node that its own autograd nodes save
//   fwd_tmp        saved intermediates: born in the node, saved by it and by no other node
//   fwd_out        outputs: the other storages born in the node that a later node reads, saves, or that are
//                  held; and storages of others that its results lie in (views, results in place): aliases
//   save_fwd_in    fwd_in has something
//   fwd_mem_tmp    bytes of fwd_tmp
//   fwd_mem_out    bytes of those outputs that are kept: some other node saves them as its fwd_in, or they
//   are
//                  held. An input of the model has an output alone: itself, kept if some node saves it
//   fwd_mem_other  bytes born in the node and alive after the forward that are no result: workspaces, casts
//                  that autocast keeps
//   fwd_mem_peak   most live bytes during the node's forward, less those at its beginning
//   bwd_mem_tmp    the same of its backward: what it makes less what it releases, at the worst moment
//   bwd_mem_out    gradients that it hands on: born in its backward, not let go in it
//   bwd_mem_grad   the gradients of parameters among them, apart from bwd_mem_out
//   bwd_mem_other  workspaces and the like that stay
//   bwd_mem_freed  bytes from before its backward that it lets go
//   recomputed     bytes that its forward, when a checkpoint computes it again, makes and leaves to others
//
// A node's backward may come in several visits (other nodes between them). bwd_mem_tmp is the largest of any
// visit; the other figures add up.
//
// So, with the row for what belongs to no node:
//   sum of fwd_mem_tmp + fwd_mem_out                    = saved + held
//   sum of both + fwd_mem_other, without inputs         = live bytes after the forward - those before
//   sum of bwd_mem_out + grad + other + recomputed - freed = live bytes after the backward - those before
//   largest over visits of (live at its beginning + its tmp) = largest live bytes while nodes are visited

#include <optional>
#include <string>
#include <vector>

#include "opcount/counts.h"
#include "profiler/nodes/node_graph.h"

namespace metaprof {

struct NodeTensor {
  uint32_t storage = 0;
  Bytes bytes;
  std::optional<Sizes> shape;  ///< of a tensor that shows it best; nothing: none was seen
  DType dtype = DType::f32;
  int32_t maker = kNoNode;  ///< node in which it was born, or the input
  bool kept = false;        ///< saved by some node, or held
  bool alias = false;       ///< an output that lies in a storage of others
};

struct NodeRow {
  ModelNode node;
  std::string name;        ///< node_name
  std::string module, op;  ///< path and operator; the latter is empty for modules and inputs
  std::vector<NodeTensor> fwd_in, fwd_tmp, fwd_out;
  std::vector<int32_t> reads;  ///< nodes whose results it reads, in the order of reading
  Bytes parameters;            ///< that it reads first of all nodes
  Bytes fwd_mem_tmp, fwd_mem_out, fwd_mem_other, fwd_mem_peak;
  Bytes bwd_mem_tmp, bwd_mem_out, bwd_mem_grad, bwd_mem_other, bwd_mem_freed, recomputed;
  Flops fwd_flop, bwd_flop, recompute_flop;               ///< of all operators
  Flops fwd_flop_counted, bwd_flop_counted;               ///< as the framework's counter counts
  double fwd_time = 0, bwd_time = 0, recompute_time = 0;  ///< seconds on an ideal device
  bool has_backward = false;                              ///< the engine evaluated some node of it

  bool save_fwd_in() const { return !fwd_in.empty(); }
  /// Its results lie in storages of others: a view, or in place.
  bool is_alias() const;
  Bytes kept() const { return fwd_mem_tmp + fwd_mem_out; }
};

/// A stretch of events in a row that belong to one node.
struct NodeVisit {
  int32_t node = kNoNode;
  bool backward = false, again = false;  ///< again: its forward is computed again
  Bytes live;                            ///< at its beginning
  Bytes most;                            ///< the largest live bytes within it
  Bytes gradients;                       ///< of parameters, alive at its beginning
  Bytes activations;                     ///< results of the forward alive at its fullest moment
  Bytes activation_gradients;  ///< results of the backward alive then, less those at its beginning, without
                               ///< gradients of parameters
};

struct NodeProfile {
  Granularity granularity = Granularity::module;
  std::vector<NodeRow> rows;
  NodeRow outside;  ///< what belongs to no node: the first gradient, numbers that Python makes
  Bytes saved, held;
  Bytes live_before_forward, live_after_forward, live_before_backward, live_after_backward;
  std::vector<NodeVisit> visits;  ///< in order
};

NodeProfile profile_nodes(const Trace& trace, Device device, Granularity granularity, const Rates& rates);

/// The same figures of groups of nodes: `group_of` has a group for each node of `graph`, or kNoNode. A
/// group's ModelNode and name are those of its first node.
NodeProfile profile_groups(const Trace& trace, Device device, const NodeGraph& graph,
                           const std::vector<int32_t>& group_of, int32_t groups, const Rates& rates);

}  // namespace metaprof
