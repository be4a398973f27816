// bitsandbytes/optim/optimizer.py (Optimizer2State) and adamw.py (AdamW8bit), bitsandbytes 0.46 to 0.48. State 0: mean
// of gradients, 1: of their squares, 2 and 3: scales of each 256 of their elements.

#include "core/error.h"
#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

class Adam8bit final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr int64_t kLeastElements = 4096, kBlock = 256, kCodes = 256;
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    if (parameter.strides() != contiguous_strides(parameter.sizes()))
      fail(
          "--optimizer adamw-8bit copies parameters that are not contiguous, which is not modelled: leave "
          "--channels-last out");
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    if (parameter.numel() < kLeastElements) {
      for (size_t k = 0; k < 2; ++k) state.tensors[k] = zeros_as(parameter, DType::f32);
      return;
    }
    // The tables of what the codes mean, one for all parameters.
    for (Tensor& table : tables_)
      if (!table.defined()) table = session.empty(Sizes{kCodes}, DType::f32);
    for (size_t k = 0; k < 2; ++k) state.tensors[k] = zeros_as(parameter, DType::u8);
    const int64_t blocks = (parameter.numel() + kBlock - 1) / kBlock;
    for (size_t k = 2; k < 4; ++k)
      state.tensors[k] = call<"zeros">(session, Sizes{blocks}, DType::f32, Value(), parameter.device());
  }

  Tensor zeros_as(const Tensor& parameter, DType dtype) {
    return call<"zeros_like">(session, parameter, dtype, Value(), parameter.device(), Value(),
                              MemoryFormat::preserve);
  }

  void foreach_step(std::vector<Group>&) override { fail("this optimizer has no foreach implementation"); }

  void for_loop_step(Group& all) override {
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const Tensor &parameter = all.parameters[i], &gradient = all.gradients[i];
      const ParameterState& state = *all.owners[i];
      if (state.tensors[2].defined())
        call_all<"bitsandbytes::optimizer_update_8bit_blockwise">(
            session, Value("adam"), gradient, parameter, state.tensors[0], state.tensors[1], kBeta1, kBeta2,
            0.0, 0.0, kEpsilon, state.steps, settings.learning_rate, tables_[0], tables_[1], state.tensors[2],
            state.tensors[3], settings.weight_decay, 1.0);
      else
        call_all<"bitsandbytes::optimizer_update_32bit">(
            session, Value("adam"), gradient, parameter, state.tensors[0], state.tensors[1], Value(), 0.0,
            0.0, kBeta1, kBeta2, 0.0, 0.0, kEpsilon, settings.weight_decay, state.steps,
            settings.learning_rate, 1.0);
    }
  }

  Tensor tables_[2];
};

}  // namespace

std::unique_ptr<Algorithm> make_adam_8bit(Session& session, const std::vector<Tensor>& parameters,
                                          Settings settings, Implementation implementation) {
  return std::make_unique<Adam8bit>(session, parameters, settings, implementation);
}

}  // namespace metaprof
