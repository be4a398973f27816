#pragma once
// Mixtures of experts: a router that chooses, and experts whose weights lie in one tensor each
// (transformers/integrations/moe.py, grouped_mm_experts_forward). How tokens spread over experts follows from
// data and changes no size here: every token goes to the same number of experts, and none is left out.

#include "program/config/layers/decoder.h"

namespace metaprof::configs {

struct ExpertPlan {
  int64_t experts = 0, chosen = 0, hidden = 0, inner = 0;
  bool input_first = false;  ///< weights are [experts, in, out], with biases: gpt_oss
  std::string type, activation, where;
};

/// Rows [tokens, hidden], the chosen experts i64[tokens, chosen] and their weights → rows.
struct Experts : nn::Module<Experts> {
  Experts(const Place& place, const ExpertPlan& plan);
  Tensor forward(Tensor rows, Tensor chosen, Tensor weights);

 private:
  Tensor product(Tensor rows, const Tensor& matrices, const Tensor& ends, Tensor bias) const;
  Tensor gated(Tensor both);

  ExpertPlan plan_;
  Tensor gate_up_proj_, gate_up_proj_bias_, down_proj_, down_proj_bias_;
  std::optional<Activation> act_fn_;
};

struct Choice {
  Tensor logits, weights, experts;
};

}  // namespace metaprof::configs
