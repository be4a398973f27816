#include "program/config/layers/experts.h"

namespace metaprof::configs {

Experts::Experts(const Place& place, const ExpertPlan& plan) : Module(place, plan.type), plan_(plan) {
  const int64_t both = 2 * plan.inner;
  if (plan.input_first) {
    gate_up_proj_ = parameter("gate_up_proj", {plan.experts, plan.hidden, both});
    gate_up_proj_bias_ = parameter("gate_up_proj_bias", {plan.experts, both});
    down_proj_ = parameter("down_proj", {plan.experts, plan.inner, plan.hidden});
    down_proj_bias_ = parameter("down_proj_bias", {plan.experts, plan.hidden});
  } else {
    gate_up_proj_ = parameter("gate_up_proj", {plan.experts, both, plan.hidden});
    down_proj_ = parameter("down_proj", {plan.experts, plan.hidden, plan.inner});
    act_fn_.emplace(child("act_fn"), plan.activation, plan.where);
  }
}

// Rows in groups that end at `ends`, each times the matrix of its group.
Tensor Experts::product(Tensor rows, const Tensor& matrices, const Tensor& ends, Tensor bias) const {
  rows = nn::to(std::move(rows), matrices.dtype());
  Tensor out = plan_.input_first
                   ? nn::call("_grouped_mm", std::move(rows), matrices, ends)
                   : nn::call("_grouped_mm", std::move(rows), nn::transpose(matrices, -2, -1), ends);
  if (bias.defined()) out = nn::call("add_.Tensor", out, std::move(bias));
  return out;
}

Tensor Experts::gated(Tensor both) {
  if (act_fn_) {
    std::vector<Tensor> halves = nn::chunk(std::move(both), 2, -1);
    const Tensor gate = std::move(halves[0]), up = std::move(halves[1]);
    return (*act_fn_)(gate)*up;
  }
  // modeling_gpt_oss.py, _apply_gate: the two lie alternately, and are clamped
  const int64_t last = both.dim() - 1;
  Tensor gate = nn::call("slice.Tensor", both, last, 0, nn::kEnd, 2);
  Tensor up = nn::call("slice.Tensor", both, last, 1, nn::kEnd, 2);
  gate = nn::call("clamp", gate, std::nullopt, 7.0);
  up = nn::call("clamp", up, -7.0, 7.0);
  const Tensor glu = gate * nn::sigmoid(gate * 1.702);
  return (up + 1.0) * glu;
}

Tensor Experts::forward(Tensor rows, Tensor chosen, Tensor weights) {
  const int64_t tokens = rows.size(0);
  const Tensor of_pairs = nn::reshape(weights, {-1});
  const Tensor ids = nn::reshape(chosen, {-1});
  const std::vector<Tensor> sorted = nn::call_all("sort", ids);
  const Tensor &experts = sorted[0], &order = sorted[1];
  const Tensor selected =
      nn::call("index.Tensor", rows, std::vector<Tensor>{nn::call("floor_divide", order, plan_.chosen)});
  const Tensor sorted_weights = nn::call("index.Tensor", of_pairs, std::vector<Tensor>{order});
  Tensor counted = nn::to(experts, DType::i32);
  const Tensor counts = nn::call("histc", counted, plan_.experts, 0, plan_.experts - 1);
  const Tensor ends = nn::call("cumsum", counts, 0, DType::i32);
  const Tensor beyond = nn::unsqueeze(nn::call("ge.Scalar", experts, plan_.experts), -1);
  (void)nn::call("clamp_", experts, std::nullopt, plan_.experts - 1);
  const auto bias_of = [&](const Tensor& bias) {
    return bias.defined() ? nn::call("index.Tensor", bias, std::vector<Tensor>{experts}) : Tensor();
  };
  const Tensor up_bias = bias_of(gate_up_proj_bias_);
  (void)nn::call("masked_fill_.Scalar", selected, beyond, 0.0);
  Tensor out = product(selected, gate_up_proj_, ends, up_bias);
  out = nn::call("masked_fill.Scalar", out, beyond, 0.0);
  out = gated(out);
  const Tensor down_bias = bias_of(down_proj_bias_);
  out = product(out, down_proj_, ends, down_bias);
  out = nn::call("masked_fill.Scalar", out, beyond, 0.0);
  Tensor weighted = out * nn::unsqueeze(sorted_weights, -1);
  const Tensor inverse = nn::call("empty_like", order);
  (void)nn::call("index_put_", inverse, std::vector<Tensor>{order}, arange(order.size(0)));
  weighted = nn::call("index.Tensor", weighted, std::vector<Tensor>{inverse});
  const Tensor summed = nn::sum(nn::view(weighted, {tokens, plan_.chosen, plan_.hidden}), 1, false);
  return nn::to(summed, rows.dtype());
}

}  // namespace metaprof::configs
