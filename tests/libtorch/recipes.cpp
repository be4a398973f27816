// Operators that libtorch 1.13 lacks, computed with operators that it has. Gradients are formulas of their
// own, not libtorch's: what is tested with them is how our records put operators together.

#include <ATen/ATen.h>

#include <cmath>
#include <unordered_map>

#include "tests/libtorch/libtorch_call.h"

namespace metaprof {
namespace {

using Values = std::vector<c10::IValue>;

// The arguments of a call by name.
class Given {
 public:
  Given(const Operator& op, const Values& values) : op_(op), values_(values) {}
  const c10::IValue& operator[](std::string_view name) const {
    return values_.at(size_t(op_.schema.find(name_hash(name))));
  }
  bool has(std::string_view name) const { return !(*this)[name].isNone(); }
  at::Tensor tensor(std::string_view name) const {
    return has(name) ? (*this)[name].toTensor() : at::Tensor();
  }

 private:
  const Operator& op_;
  const Values& values_;
};

// --- prelu

Values prelu(const Given& given) {
  const at::Tensor self = given.tensor("self");
  return {at::where(self > 0, self, given.tensor("weight") * self)};
}

Values prelu_backward(const Given& given) {
  const at::Tensor self = given.tensor("self"), grad = given.tensor("grad_output");
  return {at::where(self > 0, grad, given.tensor("weight") * grad),
          at::where(self > 0, at::zeros_like(self), self * grad)};
}

// --- squeeze of several dimensions

std::vector<int64_t> dims_from_the_back(const Given& given) {
  const int64_t rank = given.tensor("self").dim();
  std::vector<int64_t> dims = given["dim"].toIntVector();
  for (int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  std::sort(dims.rbegin(), dims.rend());
  return dims;
}

Values squeeze(const Given& given) {
  at::Tensor result = given.tensor("self");
  for (int64_t dim : dims_from_the_back(given)) result = result.squeeze(dim);
  return {result};
}

Values squeeze_copy(const Given& given) { return {squeeze(given)[0].toTensor().clone()}; }

Values squeeze_in_place(const Given& given) {
  at::Tensor self = given.tensor("self");
  for (int64_t dim : dims_from_the_back(given)) self.squeeze_(dim);
  return {self};
}

// --- softmax with rows of zeros where all is −∞

Values safe_softmax(const Given& given) {
  const at::Tensor self = given.tensor("self");
  const int64_t dim = given["dim"].toInt();
  const at::Tensor masked = self.eq(-std::numeric_limits<double>::infinity()).all(dim, true);
  return {at::softmax(self, dim).masked_fill(masked, 0)};
}

// --- rms_norm: self · rstd · weight

std::vector<int64_t> last_dims(const at::Tensor& tensor, const Given& given) {
  std::vector<int64_t> dims;
  for (size_t i = given["normalized_shape"].toIntVector().size(); i > 0; --i)
    dims.push_back(tensor.dim() - int64_t(i));
  return dims;
}

Values rms_norm(const Given& given) {
  const at::Tensor input = given.tensor("input"), weight = given.tensor("weight");
  const double epsilon = given.has("eps") ? given["eps"].toDouble() : std::numeric_limits<double>::epsilon();
  const at::Tensor rstd = (input * input).mean(last_dims(input, given), true).add(epsilon).rsqrt();
  const at::Tensor result = input * rstd;
  return {weight.defined() ? result * weight : result, rstd};
}

Values rms_norm_backward(const Given& given) {
  const at::Tensor input = given.tensor("input"), weight = given.tensor("weight"),
                   rstd = given.tensor("rstd"), grad = given.tensor("grad_out");
  const at::Tensor outer = weight.defined() ? grad * weight : grad;
  const at::Tensor along = (outer * input).mean(last_dims(input, given), true);
  Values results{rstd * (outer - input * rstd * rstd * along), at::Tensor()};
  if (weight.defined()) results[1] = (grad * input * rstd).sum_to_size(weight.sizes());
  return results;
}

// --- batch norm under its other names

Values batch_norm(const Given& given, bool training, bool statistics) {
  auto [out, mean, invstd] =
      at::native_batch_norm(given.tensor("input"), given.tensor("weight"), given.tensor("bias"),
                            statistics ? given.tensor("running_mean") : at::Tensor(),
                            statistics ? given.tensor("running_var") : at::Tensor(), training,
                            given["momentum"].toDouble(), given["eps"].toDouble());
  return {out, mean, invstd};
}

Values legit(const Given& given) { return batch_norm(given, given["training"].toBool(), true); }
Values legit_without_statistics(const Given& given) {
  return batch_norm(given, given["training"].toBool(), false);
}
Values with_reserve(Values results) {
  results.push_back(at::empty({0}, at::kByte));
  return results;
}
Values with_update(const Given& given) { return with_reserve(batch_norm(given, true, true)); }
Values no_update(const Given& given) { return with_reserve(batch_norm(given, false, true)); }

Values batch_norm_backward(const Given& given) {
  const std::vector<bool> mask(given["output_mask"].toBoolList().begin(),
                               given["output_mask"].toBoolList().end());
  auto [input, weight, bias] = at::native_batch_norm_backward(
      given.tensor("grad_out"), given.tensor("input"), given.tensor("weight"), given.tensor("running_mean"),
      given.tensor("running_var"), given.tensor("save_mean"), given.tensor("save_var"),
      given["update"].toBool(), given["eps"].toDouble(), {mask[0], mask[1], mask[2]});
  return {input, weight, bias};
}

// --- attention without dropout: softmax(scale · q · kᵀ + mask) · v

struct Attention {
  at::Tensor scores, weights;
  double scale;
};

Attention attention(const Given& given) {
  const at::Tensor query = given.tensor("query"), key = given.tensor("key");
  const double scale = given.has("scale") ? given["scale"].toDouble() : 1 / std::sqrt(double(query.size(-1)));
  at::Tensor scores = at::matmul(query, key.transpose(-2, -1)) * scale;
  if (given["is_causal"].toBool()) {
    const at::Tensor above = at::ones({query.size(-2), key.size(-2)}, at::kBool).triu(1);
    scores = scores.masked_fill(above, -std::numeric_limits<double>::infinity());
  }
  if (given.has("attn_mask")) scores = scores + given.tensor("attn_mask");
  return {scores, at::softmax(scores, -1), scale};
}

// Heads lie inside positions, as the kernel writes them.
at::Tensor heads_inside(const at::Tensor& tensor) {
  return tensor.transpose(1, 2).contiguous().transpose(1, 2);
}

Values flash_attention(const Given& given) {
  const Attention a = attention(given);
  const at::Tensor result =
      at::empty_like(given.tensor("query")).copy_(at::matmul(a.weights, given.tensor("value")));
  return {result, heads_inside(a.scores.logsumexp(-1).unsqueeze(-1)).squeeze(-1)};
}

Values flash_attention_backward(const Given& given) {
  const Attention a = attention(given);
  const at::Tensor grad = given.tensor("grad_out"), query = given.tensor("query"), key = given.tensor("key");
  const at::Tensor of_weights = at::matmul(grad, given.tensor("value").transpose(-2, -1));
  const at::Tensor of_scores = a.weights * (of_weights - (of_weights * a.weights).sum(-1, true)) * a.scale;
  return {heads_inside(at::matmul(of_scores, key)),
          heads_inside(at::matmul(of_scores.transpose(-2, -1), query)),
          heads_inside(at::matmul(a.weights.transpose(-2, -1), grad))};
}

// --- indices that may lie outside where a mask is false

c10::List<c10::optional<at::Tensor>> clamped_indices(const Given& given) {
  const at::Tensor self = given.tensor("self");
  c10::List<c10::optional<at::Tensor>> clamped;
  int64_t dim = 0;
  for (const c10::IValue& index : given["indices"].toListRef()) {
    const int64_t size = self.size(dim++);
    clamped.push_back(index.isNone() ? c10::optional<at::Tensor>()
                                     : at::clamp(index.toTensor(), -size, size - 1));
  }
  return clamped;
}

Values masked_index(const Given& given) {
  const at::Tensor taken = at::index(given.tensor("self"), clamped_indices(given));
  return {taken.masked_fill(given.tensor("mask").logical_not(), given["fill"].toScalar())};
}

Values masked_index_put(const Given& given) {
  const at::Tensor values = given.tensor("values").masked_fill(given.tensor("mask").logical_not(), 0);
  return {at::index_put(given.tensor("self"), clamped_indices(given), values, true)};
}

template <Values (*compute)(const Given&)>
Values run(const Operator& op, const Values& arguments) {
  return compute(Given(op, arguments));
}

}  // namespace

Recipe recipe_for(std::string_view name) {
  static const std::unordered_map<std::string_view, Recipe> recipes = {
      {"aten::_prelu_kernel", run<prelu>},
      {"aten::_prelu_kernel_backward", run<prelu_backward>},
      {"aten::squeeze.dims", run<squeeze>},
      {"aten::squeeze_copy.dims", run<squeeze_copy>},
      {"aten::squeeze_.dims", run<squeeze_in_place>},
      {"aten::_safe_softmax", run<safe_softmax>},
      {"aten::_unsafe_masked_index", run<masked_index>},
      {"aten::_unsafe_masked_index_put_accumulate", run<masked_index_put>},
      {"aten::_fused_rms_norm", run<rms_norm>},
      {"aten::_fused_rms_norm_backward", run<rms_norm_backward>},
      {"aten::_native_batch_norm_legit", run<legit>},
      {"aten::_native_batch_norm_legit.no_stats", run<legit_without_statistics>},
      {"aten::_batch_norm_with_update", run<with_update>},
      {"aten::_batch_norm_no_update", run<no_update>},
      {"aten::batch_norm_backward", run<batch_norm_backward>},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", run<flash_attention>},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", run<flash_attention_backward>},
  };
  const auto found = recipes.find(name);
  return found == recipes.end() ? nullptr : found->second;
}

}  // namespace metaprof
