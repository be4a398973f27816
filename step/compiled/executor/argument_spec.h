#pragma once
// What decides which plan a call of a graph runs: of every tensor among the arguments whether it is there, its dtype,
// device, number of dimensions and whether it requires grad. Sizes are not part of it: one plan serves all of them.
// Gradient mode counts where it makes a difference: without it nothing requires grad.

#include <span>
#include <vector>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// Of one argument that is a tensor or may be None.
struct ArgumentState {
  bool given = true;           ///< not None, where the argument may be None
  bool defined = true;         ///< of a tensor
  bool requires_grad = false;  ///< and gradient mode is on
  DType dtype = DType::f32;
  DeviceType device = DeviceType::cpu;
  uint8_t rank = 0;
  friend bool operator==(const ArgumentState&, const ArgumentState&) = default;
};

class ArgumentSpec {
 public:
  /// Of these arguments of a graph, one per input. Numbers and lists do not count.
  ArgumentSpec(const Graph& graph, std::span<const Constant> arguments, bool gradients);

  /// Gradient mode is on, and something requires grad.
  bool gradients() const { return gradients_; }
  const std::vector<ArgumentState>& arguments() const { return arguments_; }
  size_t hash() const { return hash_; }
  friend bool operator==(const ArgumentSpec& a, const ArgumentSpec& b) {
    return a.hash_ == b.hash_ && a.gradients_ == b.gradients_ && a.arguments_ == b.arguments_;
  }

  /// Writes into the types of a graph's inputs what this knows of them.
  void specialise(Graph& graph) const;

 private:
  bool gradients_;
  std::vector<ArgumentState> arguments_;  // of inputs that count, in order
  size_t hash_ = 0;
};

struct HashOfSpec {
  size_t operator()(const ArgumentSpec& spec) const { return spec.hash(); }
};

/// "with gradients; Tensor(f32[*,*] cpu grad); Tensor(undefined)": for --explain.
std::string to_string(const ArgumentSpec& spec);

}  // namespace metaprof::ir
