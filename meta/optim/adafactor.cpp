// torch/optim/_adafactor.py and _muon.py, PyTorch 2.11.

#include "core/error.h"
#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

Tensor norm_along(Session& session, const Tensor& tensor, int64_t dim) {
  return call<"linalg_vector_norm">(session, tensor, 2.0, Sizes{dim}, true);
}

// tensor.norm(2).item(): the number is read and the scalar dropped.
void read_norm(Session& session, const Tensor& tensor) { call<"linalg_vector_norm">(session, tensor, 2.0); }

// A matrix keeps its mean squares by row (state 0) and by column (1), anything else by element (2).
class Adafactor final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kEpsilon = 1e-7;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(false);
    const Tensor gradient = parameter.grad();
    if (gradient.dim() < 2) {
      state.tensors[2] = kept_zeros(gradient);
      return;
    }
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    Sizes rows = gradient.sizes(), columns = gradient.sizes();
    rows[rows.size() - 1] = 1;
    columns[columns.size() - 2] = 1;
    state.tensors[0] = call<"new_zeros">(session, gradient, rows);
    state.tensors[1] = call<"new_zeros">(session, gradient, columns);
  }

  // Parameters of one dtype are split once more: matrices and vectors, whichever comes first.
  std::vector<Group> by_shape(std::vector<Group>& groups) {
    std::vector<Group> split;
    for (Group& g : groups) {
      Group matrices, vectors;
      const bool matrix_first = g.gradients[0].dim() > 1;
      for (size_t i = 0; i < g.parameters.size(); ++i) {
        Group& to = g.gradients[i].dim() > 1 ? matrices : vectors;
        to.parameters.push_back(g.parameters[i]);
        to.gradients.push_back(g.gradients[i]);
        to.steps.push_back(g.owners[i]->step);
        for (size_t k = 0; k < 3; ++k)
          if (g.owners[i]->tensors[k].defined()) to.states[k].push_back(g.owners[i]->tensors[k]);
      }
      for (Group* part : {matrix_first ? &matrices : &vectors, matrix_first ? &vectors : &matrices})
        if (!part->parameters.empty()) split.push_back(std::move(*part));
    }
    return split;
  }

  void foreach_step(std::vector<Group>& groups) override {
    List updates;
    for (Group& g : by_shape(groups)) {
      if (settings.maximize) g.gradients = fresh<"_foreach_neg">(session, g.gradients);
      count(g);
      for (const Tensor& parameter : g.parameters) read_norm(session, parameter);
      in_place<"_foreach_mul_.Scalar">(session, g.parameters,
                                       1 - settings.learning_rate * settings.weight_decay);
      updates = g.states[2].empty() ? factored_variances(g) : full_variances(g);
      in_place<"_foreach_clamp_min_.Scalar">(session, updates, kEpsilon * kEpsilon);
      in_place<"_foreach_rsqrt_">(session, updates);
      in_place<"_foreach_mul_.List">(session, updates, g.gradients);
      for (const Tensor& update : updates) read_norm(session, update);
      in_place<"_foreach_mul_.ScalarList">(session, updates, numbers(updates));
      in_place<"_foreach_add_.List">(session, g.parameters, updates);
      g.gradients.clear();  // the next group's take their name before anything else happens
    }
  }

  void update_means(const Group& g, const List& means, int64_t dim) {
    List squares;
    for (const Tensor& gradient : g.gradients) squares.push_back(norm_along(session, gradient, dim));
    in_place<"_foreach_mul_.List">(session, squares, squares);
    in_place<"_foreach_div_.ScalarList">(session, squares, numbers(squares));
    in_place<"_foreach_lerp_.ScalarList">(session, means, squares, numbers(squares));
  }

  List factored_variances(const Group& g) {
    update_means(g, g.states[0], -1);
    update_means(g, g.states[1], -2);
    List estimates, scales;
    for (size_t i = 0; i < g.parameters.size(); ++i)
      estimates.push_back(call<"matmul">(session, g.states[0][i], g.states[1][i]));
    for (const Tensor& rows : g.states[0]) scales.push_back(call<"mean.dim">(session, rows, Sizes{-2}, true));
    in_place<"_foreach_clamp_min_.Scalar">(session, scales, kEpsilon);
    in_place<"_foreach_div_.List">(session, estimates, scales);
    return estimates;
  }

  List full_variances(const Group& g) {
    {
      const List squares = fresh<"_foreach_mul.List">(session, g.gradients, g.gradients);
      in_place<"_foreach_lerp_.ScalarList">(session, g.states[2], squares, numbers(squares));
    }
    List copies;
    for (const Tensor& variance : g.states[2]) copies.push_back(call<"clone">(session, variance));
    return copies;
  }

  // Python names of the loop: each holds its tensor until the next iteration binds it again. The first of them goes first.
  struct Names {
    Tensor update, squared, estimate, column_mean, row_mean, gradient;
  };

  void for_loop_step(Group& all) override {
    Names names;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const Tensor& parameter = all.parameters[i];
      names.gradient = settings.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      const Tensor& gradient = names.gradient;
      ParameterState& state = *all.owners[i];
      count(state);
      read_norm(session, parameter);
      call<"mul_.Tensor">(session, parameter, 1 - settings.learning_rate * settings.weight_decay);
      if (gradient.dim() > 1) {
        estimate_factored(names, state, gradient);
      } else {
        names.squared = call<"mul.Tensor">(session, gradient, gradient);
        call<"lerp_.Scalar">(session, state.tensors[2], names.squared, 0.5);
        names.estimate = call<"clone">(session, state.tensors[2]);
      }
      call<"clamp_">(session, names.estimate, kEpsilon * kEpsilon);
      call<"rsqrt_">(session, names.estimate);
      names.update = names.estimate;
      call<"mul_.Tensor">(session, names.update, gradient);
      read_norm(session, names.update);
      call<"add_.Tensor">(session, parameter, names.update, -settings.learning_rate);
    }
  }

  Tensor mean_square(const Tensor& gradient, int64_t dim) {
    Tensor norm = norm_along(session, gradient, dim);
    call<"square_">(session, norm);
    call<"div_.Tensor">(session, norm, gradient.size(dim));
    return norm;
  }

  void estimate_factored(Names& names, ParameterState& state, const Tensor& gradient) {
    names.row_mean = mean_square(gradient, -1);
    call<"lerp_.Scalar">(session, state.tensors[0], names.row_mean, 0.5);
    names.column_mean = mean_square(gradient, -2);
    call<"lerp_.Scalar">(session, state.tensors[1], names.column_mean, 0.5);
    names.estimate = call<"matmul">(session, state.tensors[0], state.tensors[1]);
    const Tensor scale = call<"mean.dim">(session, state.tensors[0], Sizes{-2}, true);
    call<"clamp_">(session, scale, kEpsilon);
    call<"div_.Tensor">(session, names.estimate, scale);
  }
};

// State 0: momentum buffer. Matrices only.
class Muon final : public Algorithm {
 public:
  Muon(Session& session, const std::vector<Tensor>& parameters, Settings settings, Implementation how)
      : Algorithm(session, parameters, settings, how) {
    for (const Tensor& parameter : parameters)
      if (parameter.dim() != 2)
        fail("optimizer 'muon' takes matrices only; got a parameter {}", describe(parameter));
  }

 private:
  static constexpr int kIterations = 5;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.tensors[0] = kept_zeros(parameter.grad());
  }

  void foreach_step(std::vector<Group>&) override {
    fail("optimizer 'muon' has no implementation 'foreach'");
  }

  void for_loop_step(Group& all) override {
    Tensor update;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const Tensor &parameter = all.parameters[i], &buffer = all.owners[i]->tensors[0];
      call<"lerp_.Scalar">(session, buffer, all.gradients[i], 1 - settings.momentum);
      update = call<"lerp.Scalar">(session, all.gradients[i], buffer, settings.momentum);
      update = orthogonal(update);
      call<"mul_.Tensor">(session, parameter, 1 - settings.learning_rate * settings.weight_decay);
      call<"add_.Tensor">(session, parameter, update, -settings.learning_rate);
    }
  }

  // Newton-Schulz iterations in bf16 on the wide side.
  Tensor orthogonal(const Tensor& gradient) {
    const bool tall = gradient.size(0) > gradient.size(1);
    Tensor x = call<"to.dtype">(session, gradient, DType::bf16);
    if (tall) x = call<"t">(session, x);
    {
      const Tensor norm = call<"linalg_vector_norm">(session, x, 2.0);
      const Tensor scale = call<"clamp">(session, norm, 1e-7);
      call<"div_.Tensor">(session, x, scale);
    }
    Tensor gram, correction;
    for (int i = 0; i < kIterations; ++i) {
      gram = call<"matmul">(session, x, call<"t">(session, x));
      correction = call<"addmm">(session, gram, gram, gram, 1, 1);
      x = call<"addmm">(session, x, correction, x, 1, 1);
    }
    if (tall) x = call<"t">(session, x);
    return x;
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_adafactor(Session& session, const std::vector<Tensor>& parameters,
                                          Settings settings, Implementation implementation) {
  return std::make_unique<Adafactor>(session, parameters, settings, implementation);
}
std::unique_ptr<Algorithm> make_muon(Session& session, const std::vector<Tensor>& parameters,
                                     Settings settings, Implementation implementation) {
  return std::make_unique<Muon>(session, parameters, settings, implementation);
}

}  // namespace metaprof
