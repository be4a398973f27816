#pragma once
// What the optimizers share: settings, state per parameter, groups of one dtype.

#include <array>
#include <memory>

#include "meta/optim/list.h"

namespace metaprof {

enum class Implementation : uint8_t { foreach, for_loop, fused };

/// Whether an optimizer takes gradients that are sparse, as those of embeddings can be.
enum class SparseGradients : uint8_t { refused, taken, expected };

/// The arguments that recorded configurations give; others have the framework's defaults.
struct Settings {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  double momentum = 0;
  bool nesterov = false;
  bool amsgrad = false;
  bool maximize = false;
  bool capturable = false;  ///< step counters live on the device
  bool decoupled = false;   ///< weight decay acts on the parameter, not on the gradient
  bool centered = false;
  bool differentiable = false;  ///< steps have a history of their own
};

/// State of one parameter; made at the first step in which it has a gradient.
struct ParameterState {
  Tensor step;                    ///< the counter, usually on the host
  std::array<Tensor, 4> tensors;  ///< what the algorithm keeps, in its own order
  int64_t steps = 0;
  bool made = false;
};

/// Parameters of one device and dtype that have gradients, with their state.
struct Group {
  List parameters, gradients, steps;
  std::array<List, 4> states;
  std::vector<ParameterState*> owners;  ///< of those lists' elements
};

class Algorithm {
 public:
  Algorithm(Session& session, const std::vector<Tensor>& parameters, Settings settings,
            Implementation implementation)
      : session(session), parameters(parameters), settings(settings), implementation(implementation) {
    states.resize(parameters.size());
  }
  virtual ~Algorithm() = default;

  /// One step; grad mode is off, unless it is differentiable. Errors: a gradient is sparse, and the optimizer does not take it.
  void step();
  bool fused() const { return implementation == Implementation::fused; }
  bool differentiable() const { return settings.differentiable; }
  /// What a step runs does not depend on how many there were, but for the first.
  virtual bool steps_alike() const { return true; }

  Tensor grad_scale, found_inf;  ///< for fused kernels under a GradScaler

 protected:
  /// Makes the state of a parameter that has a gradient, in the order of the framework.
  virtual void make_state(const Tensor& parameter, ParameterState& state) = 0;
  virtual void foreach_step(std::vector<Group>& groups) = 0;
  virtual void for_loop_step(Group& all) = 0;
  virtual void fused_step(std::vector<Group>& groups);
  /// `expected`: those that are dense are refused.
  virtual SparseGradients sparse_gradients() const { return SparseGradients::refused; }

  /// A counter on the host or, if asked for, on the device.
  Tensor counter(bool on_device);
  /// Zeros of the parameter's geometry that stay: torch.zeros_like(p, memory_format=preserve_format).
  Tensor kept_zeros(const Tensor& like);
  /// Adds 1 to the counters of a group.
  void count(const Group& group);
  /// Adds 1 to one counter.
  void count(ParameterState& state);

  /// Reports say whose state a storage is: it is named after its parameter.
  void name_new_states();

  // NOLINTBEGIN(readability-identifier-naming): each optimizer's formulas read these
  Session& session;
  const std::vector<Tensor>& parameters;
  const Settings settings;
  const Implementation implementation;
  std::vector<ParameterState> states;
  // NOLINTEND(readability-identifier-naming)
};

/// Gradients as most optimizers take them: negated, with decay, where asked for. A list is negated once and then added to.
List with_decay(Session& session, const Settings& settings, const Group& group);
Tensor with_decay(Session& session, const Settings& settings, const Tensor& gradient,
                  const Tensor& parameter);

/// The optimizers; each makes what its constructor in the framework makes.
using Maker = std::unique_ptr<Algorithm> (*)(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_sgd(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_adam(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_adam_8bit(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_sparse_adam(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_rmsprop(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_adagrad(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_adadelta(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_adamax(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_nadam(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_radam(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_rprop(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_asgd(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_adafactor(Session&, const std::vector<Tensor>&, Settings, Implementation);
std::unique_ptr<Algorithm> make_muon(Session&, const std::vector<Tensor>&, Settings, Implementation);

}  // namespace metaprof
