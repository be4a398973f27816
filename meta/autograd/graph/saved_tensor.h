#pragma once
// A tensor kept for backward: the same storage, never a copy.

#include "meta/autograd/graph/node.h"
#include "meta/autograd/graph/state.h"

namespace metaprof {

class SavedTensor {
 public:
  SavedTensor() = default;
  /// `output`: the tensor is an output of `node` itself; kept without a cycle.
  SavedTensor(const Tensor& tensor, Node& node, bool output);
  SavedTensor(SavedTensor&&) noexcept = default;
  SavedTensor& operator=(SavedTensor&& other) noexcept;
  ~SavedTensor() { reset(); }

  bool defined() const { return kind_ != Kind::nothing; }
  /// The tensor again. Errors: it was written in place since; the graph was already used and freed.
  Tensor unpack(Node& node) const;
  /// Lets go of the tensor; unpacking is an error from then on.
  void release();

 private:
  enum class Kind : uint8_t { nothing, original, output, packed, released };
  void reset();
  void check_version(const Node& node) const;
  void pack(const Tensor& tensor, Node& node, bool output);
  Tensor unpack_packed(Node& node) const;

  Kind kind_ = Kind::nothing;
  bool has_history_ = false;  // of an output: it is differentiable
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  uint32_t node_ = 0;     // index into Trace::nodes
  Tensor original_;       // inputs and leaves: the tensor itself
  Ref<Storage> storage_;  // outputs: storage and geometry, without the grad_fn that owns this
  Geometry geometry_;
  // What user hooks made of it.
  struct Packed {
    Ref<Counted> object;
    std::shared_ptr<SavedTensorHooks> hooks;
    Edge edge;  // the history of the original; of an output, the node is known when it is unpacked
    bool output = false;
  };
  std::unique_ptr<Packed> packed_;
};

}  // namespace metaprof
