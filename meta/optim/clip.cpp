#include "meta/optim/clip.h"

#include "core/error.h"
#include "meta/optim/list.h"

namespace metaprof {
namespace {

// Gradients by dtype.
std::vector<List> gradient_groups(std::span<const Tensor> parameters) {
  std::vector<List> groups;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.is_sparse()) fail("sparse gradients cannot be clipped, in the framework neither");
    List* group = nullptr;
    for (List& g : groups)
      if (g[0].dtype() == gradient.dtype()) group = &g;
    if (!group) group = &groups.emplace_back();
    group->push_back(gradient);
  }
  return groups;
}

}  // namespace

Tensor clip_gradient_norm(Session& session, std::span<const Tensor> parameters, double largest,
                          double norm_type) {
  Scoped<bool> no_grad(session.modes.grad, false);
  Scoped<Category> born_as(session.category, Category::temporary);
  const std::vector<List> groups = gradient_groups(parameters);
  if (groups.empty()) return {};
  Tensor total;
  {
    List norms;
    for (const List& gradients : groups)
      for (const Tensor& norm : fresh<"_foreach_norm.Scalar">(session, gradients, norm_type))
        norms.push_back(norm);
    const Tensor all = call<"stack">(session, as_value(norms));
    total = call<"linalg_vector_norm">(session, all, norm_type);
  }
  // max_norm / (total + 1e-6) is reciprocal() * max_norm.
  Tensor coefficient;
  {
    Tensor shifted = call<"add.Tensor">(session, total, 1e-6);
    const Tensor reciprocal = call<"reciprocal">(session, shifted);
    coefficient = call<"mul.Tensor">(session, reciprocal, largest);
  }
  const Tensor clamped = call<"clamp">(session, coefficient, Value(), 1.0);
  for (const List& gradients : groups) in_place<"_foreach_mul_.Tensor">(session, gradients, clamped);
  return total;
}

void clip_gradient_value(Session& session, std::span<const Tensor> parameters, double largest) {
  Scoped<bool> no_grad(session.modes.grad, false);
  for (const List& gradients : gradient_groups(parameters)) {
    in_place<"_foreach_clamp_min_.Scalar">(session, gradients, -largest);
    in_place<"_foreach_clamp_max_.Scalar">(session, gradients, largest);
  }
}

}  // namespace metaprof
