// Derivatives of layers. Several call another operator in the forward, whose further results they keep.

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

// The mask is bool, as on a device.
void dropout(Formula& f) {
  const std::vector<Term> made =
      f.replace_call("aten::native_dropout", {f.input("input"), f.input("p"), f.input("train")});
  const double kept = 1 - f.value_of("p").real();
  f.give("input", f.call("aten::native_dropout_backward",
                         {f.gradient(), made[1], f.constant(kept == 0 ? 1.0 : 1 / kept)}));
}

// Without training it is the identity, which the framework leaves outside.
bool is_training(const Node& call) {
  return call.has_constant(1) && call.has_constant(2) && call.constant(2).boolean();
}

void batch_norm(Formula& f) {
  const Term input = f.input("input"), weight = f.input("weight");
  const Term mean = f.input("running_mean"), variance = f.input("running_var");
  const Term training = f.input("training"), eps = f.input("eps");
  const std::vector<Term> made = f.replace_call("aten::_batch_norm_impl_index",
                                                {input, weight, f.input("bias"), mean, variance, training,
                                                 f.input("momentum"), eps, f.input("cudnn_enabled")});
  const metaprof::Value::Booleans mask = {1, static_cast<char>(!f.is_none("weight")),
                                          static_cast<char>(!f.is_none("bias"))};
  const std::vector<Term> gradients = f.calls("aten::_batch_norm_impl_index_backward",
                                              {made[4], input, f.gradient(), weight, mean, variance, made[1],
                                               made[2], training, eps, f.constant(Constant(mask)), made[3]});
  f.give("input", gradients[0]);
  if (mask[1]) f.give("weight", gradients[1]);
  if (mask[2]) f.give("bias", gradients[2]);
}

void layer_norm(Formula& f) {
  const Term input = f.input("input"), shape = f.input("normalized_shape");
  const Term weight = f.input("weight"), bias = f.input("bias");
  const std::vector<Term> made =
      f.replace_call("aten::native_layer_norm", {input, shape, weight, bias, f.input("eps")});
  const metaprof::Value::Booleans mask = {1, static_cast<char>(!f.is_none("weight")),
                                          static_cast<char>(!f.is_none("bias"))};
  const std::vector<Term> gradients =
      f.calls("aten::native_layer_norm_backward",
              {f.gradient(), input, shape, made[1], made[2], weight, bias, f.constant(Constant(mask))});
  f.give("input", gradients[0]);
  if (mask[1]) f.give("weight", gradients[1]);
  if (mask[2]) f.give("bias", gradients[2]);
}

void native_batch_norm(Formula& f) {
  const metaprof::Value::Booleans all = {1, 1, 1};
  const std::vector<Term> gradients = f.calls(
      "aten::native_batch_norm_backward",
      {f.gradient(), f.input("input"), f.input("weight"), f.input("running_mean"), f.input("running_var"),
       f.result(1), f.result(2), f.input("training"), f.input("eps"), f.constant(Constant(all))});
  f.give("input", gradients[0]);
  f.give("weight", gradients[1]);
  f.give("bias", gradients[2]);
}

void embedding(Formula& f) {
  const Term rows = f.forward_number("aten::size.int", {f.input("weight"), f.forward_constant(0)});
  f.give("weight",
         f.call("aten::embedding_backward", {f.gradient(), f.input("indices"), rows, f.input("padding_idx"),
                                             f.input("scale_grad_by_freq"), f.input("sparse")}));
}

void softmax(Formula& f) {
  const Term dtype = f.number("prim::dtype", {f.self()});
  f.give("self", f.call("aten::_softmax_backward_data", {f.gradient(), f.result(), f.input("dim"), dtype}));
}

void log_softmax(Formula& f) {
  const Term dtype = f.number("prim::dtype", {f.self()});
  f.give("self",
         f.call("aten::_log_softmax_backward_data", {f.gradient(), f.result(), f.input("dim"), dtype}));
}

void nll_loss(Formula& f) {
  const Term self = f.self(), target = f.input("target"), weight = f.input("weight");
  const Term reduction = f.input("reduction"), ignored = f.input("ignore_index");
  const std::vector<Term> made =
      f.replace_call("aten::nll_loss_forward", {self, target, weight, reduction, ignored});
  f.give("self", f.call("aten::nll_loss_backward",
                        {f.gradient(), self, target, weight, reduction, ignored, made[1]}));
}

void mean_pool(Formula& f) {
  f.give("self",
         f.call("aten::avg_pool2d_backward",
                {f.gradient(), f.self(), f.input("kernel_size"), f.input("stride"), f.input("padding"),
                 f.input("ceil_mode"), f.input("count_include_pad"), f.input("divisor_override")}));
}

// To one element each it is a mean, which the gradient is spread over; `dims`: that are pooled.
Term adaptive_mean_slope(Formula& f, Term gradient, Term self, const Sizes& output, size_t dims) {
  bool is_mean = true;
  for (const int64_t size : output) is_mean &= size == 1;
  if (!is_mean)
    return f.call(dims == 2 ? "aten::_adaptive_avg_pool2d_backward" : "aten::_adaptive_avg_pool3d_backward",
                  {gradient, self});
  const Term size = f.number("aten::size", {self});
  Term count = f.number("aten::__getitem__.t", {size, f.constant(-1)});
  for (size_t dim = 2; dim <= dims; ++dim) {
    const Term length = f.number("aten::__getitem__.t", {size, f.constant(-static_cast<int64_t>(dim))});
    count = f.number("aten::mul.int", {count, length});
  }
  return f.call("aten::expand", {gradient, size}) / count;
}

void adaptive_mean_pool_1d(Formula& f) {
  const Term two = f.constant(2);
  const Term gradient = f.call("aten::unsqueeze", {f.gradient(), two}),
             self = f.call("aten::unsqueeze", {f.self(), two});
  const Sizes output{1, f.value_of("output_size").integers()[0]};
  f.give("self", f.call("aten::squeeze.dim", {adaptive_mean_slope(f, gradient, self, output, 2), two}));
}
void adaptive_mean_pool_2d(Formula& f) {
  f.give("self", adaptive_mean_slope(f, f.gradient(), f.self(), f.value_of("output_size").integers(), 2));
}
void adaptive_mean_pool_3d(Formula& f) {
  f.give("self", adaptive_mean_slope(f, f.gradient(), f.self(), f.value_of("output_size").integers(), 3));
}

bool has_constant_size(const Node& call) {
  return call.has_constant(1) && call.constant(1).kind() == Constant::Kind::integers &&
         !call.constant(1).integers().empty();
}

void give_of_largest(Formula& f, Term indices) {
  f.give("self", f.call("aten::max_pool2d_with_indices_backward",
                        {f.gradient(), f.self(), f.input("kernel_size"), f.input("stride"),
                         f.input("padding"), f.input("dilation"), f.input("ceil_mode"), indices}));
}

void max_pool(Formula& f) {
  const std::vector<Term> made = f.replace_call(
      "aten::max_pool2d_with_indices", {f.self(), f.input("kernel_size"), f.input("stride"),
                                        f.input("padding"), f.input("dilation"), f.input("ceil_mode")});
  give_of_largest(f, made[1]);
}

void max_pool_with_indices(Formula& f) { give_of_largest(f, f.result(1)); }

constexpr FormulaRow kLayers[] = {
    {"aten::dropout", dropout, is_training},
    {"aten::batch_norm", batch_norm},
    {"aten::native_batch_norm", native_batch_norm},
    {"aten::layer_norm", layer_norm},
    {"aten::embedding", embedding},
    {"aten::softmax.int", softmax},
    {"aten::log_softmax.int", log_softmax},
    {"aten::nll_loss", nll_loss},
    {"aten::avg_pool2d", mean_pool},
    {"aten::adaptive_avg_pool1d", adaptive_mean_pool_1d, has_constant_size, kCallsFunctions},
    {"aten::adaptive_avg_pool2d", adaptive_mean_pool_2d, has_constant_size, kCallsFunctions},
    {"aten::adaptive_avg_pool3d", adaptive_mean_pool_3d, has_constant_size, kCallsFunctions},
    {"aten::max_pool2d", max_pool},
    {"aten::max_pool2d_with_indices", max_pool_with_indices},
};

}  // namespace

std::span<const FormulaRow> layer_formulas() { return kLayers; }

}  // namespace metaprof::ir
