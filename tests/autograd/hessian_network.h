#pragma once
// The Hessian of a network: what not computing gradients that nobody asked for saves. Six hidden layers,
// Linear and ReLU, a batch of 10,000; shared by the test and the benchmark.

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/state.h"
#include "meta/ops/all.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"

namespace metaprof {

struct HessianCost {
  int64_t flops = 0;           ///< of forward, gradient and Hessian
  int64_t flops_backward = 0;  ///< of a backward pass of the Hessian's sum to the weights
  int64_t saved_bytes = 0;     ///< of all tensors that nodes kept on the way, however long
  int64_t saved_most = 0;      ///< kept at one time
};

struct HessianNetwork {
  int64_t batch = 10'000, inputs = 8, width = 512, hidden = 6;
};

/// Runs it; `trim`: rows of derivative tables that nobody needs are left out.
inline HessianCost run_hessian(const HessianNetwork& net, bool trim, bool final_backward) {
  const auto session = make_session(platform_named("h200"));
  autograd_state(*session).trim_rows = trim;
  auto leaf = [&](const Sizes& sizes) {
    Tensor made = session->empty(sizes, DType::f32);
    made->requires_grad = true;
    return made;
  };
  const Tensor x = leaf({net.batch, net.inputs});
  Tensor y = x;
  for (int64_t layer = 0; layer <= net.hidden; ++layer) {
    const int64_t in = layer == 0 ? net.inputs : net.width, out = layer == net.hidden ? 1 : net.width;
    y = call<"linear">(*session, y, leaf({out, in}), leaf({out}));
    if (layer < net.hidden) y = call<"relu">(*session, y);
  }
  const Tensor outputs[] = {sum(y)}, inputs[] = {x};
  const Tensor gradient = grad(*session, outputs, inputs, {}, {.create_graph = true})[0];
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < net.inputs; ++i) {
    const Tensor component[] = {sum(select(gradient, 1, i))};
    rows.push_back(grad(*session, component, inputs, {}, {.create_graph = true})[0]);
  }
  auto flops = [&] {
    int64_t total = 0;
    for (const CallRecord& call : session->trace.calls) total += call.counted.count;
    return total;
  };
  HessianCost cost{.flops = flops()};
  if (final_backward) {
    const Tensor roots[] = {sum(call<"stack">(*session, Value::Tensors(rows.begin(), rows.end()), 0))};
    backward(*session, roots);
    cost.flops_backward = flops() - cost.flops;
  }
  std::unordered_map<uint32_t, int> kept;
  int64_t now = 0;
  for (const Event& event : session->trace.events) {
    if (event.kind != Event::Kind::save && event.kind != Event::Kind::release) continue;
    const int64_t bytes = session->trace.storages[event.id].bytes.count;
    if (event.kind == Event::Kind::save) {
      cost.saved_bytes += bytes;
      if (kept[event.id]++ == 0) now += bytes;
    } else if (--kept[event.id] == 0) {
      now -= bytes;
    }
    cost.saved_most = std::max(cost.saved_most, now);
  }
  return cost;
}

}  // namespace metaprof
