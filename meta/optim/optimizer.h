#pragma once
// Optimizers as programs over operators: what torch.optim (PyTorch 2.11) calls, in its order, with the
// lifetimes that Python gives to its temporaries. No numbers: only sizes, and when they live.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/session/session.h"

namespace metaprof {

class Algorithm;

/// The optimizers by the words of recorded configurations ("sgd", "sgd-momentum", "adamw", …), without what some words
/// can carry behind them.
std::vector<std::string> known_optimizers();
/// That words carry endings, as messages say it: "adam-amsgrad-maximize" is torch.optim.Adam(amsgrad=True, maximize=True);
/// "-wd" is a weight decay of 0.01.
std::string_view optimizer_endings();
/// Whether it is one of these words, with or without endings.
bool is_optimizer(std::string_view name);

/// Whether the framework lets a step be captured in a CUDA graph: most of those that count their steps refuse it,
/// unless the counters are on the device (torch/optim/optimizer.py, _accelerator_graph_capture_health_check).
/// Errors: an unknown word.
bool step_can_be_captured(std::string_view name);

/// Whether there is one kernel for all of its step. Errors: an unknown word.
bool has_fused_code(std::string_view name);

/// Which code of an optimizer runs; standard: what the framework chooses for the device.
enum class OptimizerImpl : uint8_t { standard, foreach, for_loop, fused };
/// Their words: "default", "foreach", "for-loop", "fused".
std::vector<std::string> known_implementations();
std::string_view to_string(OptimizerImpl implementation);
/// Errors: there is no such word; the message lists those that are.
OptimizerImpl optimizer_impl_named(std::string_view word);

class Optimizer {
 public:
  /// Error: an unknown word; an implementation that this optimizer does not have on this device; a parameter
  /// that it cannot take. Some constructors allocate (Adagrad). `session` must outlive the optimizer.
  Optimizer(Session& session, std::string_view name, OptimizerImpl implementation,
            std::vector<Tensor> parameters);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;

  /// One step over the parameters that have a gradient.
  void step();
  /// Drops the gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  /// From the second on, each step runs what the one before it has run.
  bool steps_alike() const;
  /// Its kernels unscale gradients themselves and skip the step on overflow: the fused ones.
  bool takes_grad_scale() const;
  /// For the next step of an optimizer that takes them; undefined: none.
  void set_grad_scale(Tensor grad_scale, Tensor found_inf);

  const std::vector<Tensor>& parameters() const { return parameters_; }

 private:
  Session& session_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<Algorithm> algorithm_;
};

}  // namespace metaprof
