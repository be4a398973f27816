// torch/optim/sparse_adam.py and _functional.py, PyTorch 2.11. State 0: mean of gradients, 1: of their squares; only
// rows that a gradient has are written.

#include "meta/ops/sparse/sparse.h"
#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

class SparseAdam final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

  // What sparse_adam has names for; all live until the next parameter's take their places.
  struct Rows {
    Tensor gradient, indices, values, old_mean, old_square, numerator, denominator;
  };

  SparseGradients sparse_gradients() const override { return SparseGradients::expected; }

  void make_state(const Tensor& parameter,
                  ParameterState& state) override {  // the counter is a Python number
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>&) override {}  // it has none: optimizer.cpp

  Tensor at_rows(const Rows& rows, const Tensor& values) {
    return make_sparse(session, rows.indices, values, rows.gradient.sizes());
  }

  Tensor values_at_rows(const Tensor& state, const Tensor& gradient) {
    const Tensor masked = call<"sparse_mask">(session, state, gradient);
    return alias(Tensor(masked->extra->parts[1]));
  }

  // Both means become those of old and new at the gradient's rows; what the update is made of stays.
  void update_means(Rows& rows, ParameterState& state) {
    rows.old_mean = values_at_rows(state.tensors[0], rows.gradient);
    const Tensor mean = call<"sub.Tensor">(session, rows.values, rows.old_mean);
    call<"mul_.Tensor">(session, mean, 1 - kBeta1);
    call<"add_.Tensor">(session, state.tensors[0], at_rows(rows, mean));
    rows.old_square = values_at_rows(state.tensors[1], rows.gradient);
    const Tensor square = call<"pow.Tensor_Scalar">(session, rows.values, 2);
    call<"sub_.Tensor">(session, square, rows.old_square);
    call<"mul_.Tensor">(session, square, 1 - kBeta2);
    call<"add_.Tensor">(session, state.tensors[1], at_rows(rows, square));
    rows.numerator = call<"add_.Tensor">(session, mean, rows.old_mean);
    call<"add_.Tensor">(session, square, rows.old_square);
    call<"sqrt_">(session, square);
    rows.denominator = call<"add_.Tensor">(session, square, kEpsilon);
  }

  void for_loop_step(Group& all) override {
    Rows rows;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      rows.gradient = all.gradients[i];
      if (settings.maximize) rows.gradient = negative(session, rows.gradient);
      rows.gradient = call<"coalesce">(session, rows.gradient);
      rows.indices = alias(Tensor(rows.gradient->extra->parts[0]));
      rows.values = alias(Tensor(rows.gradient->extra->parts[1]));
      if (rows.values.numel() == 0) continue;
      update_means(rows, *all.owners[i]);
      call<"div_.Tensor">(session, rows.numerator, rows.denominator);
      const Tensor change = call<"mul.Tensor">(session, rows.numerator, -settings.learning_rate);
      call<"add_.Tensor">(session, all.parameters[i], at_rows(rows, change));
    }
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_sparse_adam(Session& session, const std::vector<Tensor>& parameters,
                                            Settings settings, Implementation implementation) {
  return std::make_unique<SparseAdam>(session, parameters, settings, implementation);
}

}  // namespace metaprof
