#pragma once
// A forward and its backward, written into the trace once more in place of being run once more: what finds the same
// does the same, and only storages, calls and nodes have other numbers.

#include <unordered_map>
#include <vector>

#include "meta/autograd/graph/node.h"
#include "meta/platform/planned_workspaces.h"
#include "step/placement.h"

namespace metaprof {

class RepeatedPass {
 public:
  /// Both outlive it.
  RepeatedPass(Session& session, const PlacedTensors& placed) : session_(session), placed_(placed) {}

  // A pass that is run says where it is. `open_modules`: of the interpreter; recomputation leaves its last one open.
  void forward_begins(int32_t open_modules);
  void loss_is_bound();  ///< right after the loss of the forward before went
  void forward_ends();
  void backward_ends(const Tensor& loss);

  /// Whether a pass that begins now finds what the one that was run found, and that one left nothing behind but its
  /// loss, gradients of parameters, and workspaces of cuBLAS.
  bool repeats(int32_t open_modules) const;
  /// What the next forward does. `loss`: that of the forward before, which goes, and this one's after it.
  void write_forward(uint32_t step, Tensor& loss);
  void write_backward(uint32_t step);

 private:
  // How much of the trace there is.
  struct Place {
    size_t events, storages, calls, nodes, tensors, edges, losses;
    uint64_t sequence, device_thread_sequence;
    PlannedWorkspaces::Counts planned;
  };
  // A tensor as the pass left it.
  struct Left {
    Tensor parameter;  // whose gradient it is; undefined: the loss
    Sizes sizes, strides;
    int64_t offset;
    DType dtype;
    Device device;
    uint32_t storage;
  };
  using SharedStorages = std::unordered_map<uint32_t, Ref<Storage>>;  // by number
  // Numbers of what the pass made, in this repetition: by number, less the first of the pass.
  struct Numbers {
    std::vector<uint32_t> storages, nodes;
    uint32_t calls = 0, tensors = 0, edges = 0;  // added to each
  };

  Place here() const;
  bool leaves_gradients_only() const;
  void number_again();
  void write_records();
  void write_events(size_t begin, size_t end, uint32_t step);
  uint64_t sequence(size_t node, uint64_t of_the_pass, const Place& now) const;
  uint32_t storage(uint32_t number) const;
  uint32_t node(uint32_t number) const;
  Tensor stand_in(const Left& left, SharedStorages& shared) const;

  Session& session_;
  const PlacedTensors& placed_;
  Place begin_{}, end_{};
  int32_t open_modules_ = 0;
  size_t forward_nodes_ = 0;  // in the trace when the forward ended
  // Of the trace's events, where the loss was bound and where the forward ended.
  size_t bound_ = 0, forward_ended_ = 0;
  std::vector<uint32_t> parameters_;  // their storages
  std::vector<Left> left_;
  std::vector<uint32_t> accumulators_;  // nodes that live as long as there is a graph
  bool repeats_ = false;
  Numbers now_;
};

}  // namespace metaprof
