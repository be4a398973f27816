// The autograd engine by itself: gradients of an input, a gradient penalty, a product of the Hessian and a vector, hooks on
// saved tensors, a selective checkpoint, anomaly mode. Each line says what it cost. Built like mlp.cpp.

#include <iostream>

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/graph/state.h"
#include "meta/autograd/modes/checkpoint.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"

using namespace metaprof;

// sum(linear(tanh(linear(x, w1)), w2)) of 128 rows, 32 → 64 → 16, on a device of its own.
struct Network {
  Network() : session(make_session(platform_named("h200"))) {
    session->category = Category::parameter;
    w1 = leaf({64, 32});
    w2 = leaf({16, 64});
    session->category = Category::activation;
    x = leaf({128, 32});
  }

  Tensor leaf(const Sizes& sizes) {
    Tensor made = session->empty(sizes, DType::f32);
    made->requires_grad = true;
    return made;
  }

  Tensor hidden(const Tensor& input) { return call<"tanh">(*session, call<"linear">(*session, input, w1)); }
  Tensor loss() { return call<"sum">(*session, call<"linear">(*session, hidden(x), w2)); }

  // How often operators of this name were called, and what all products of matrices have computed.
  int64_t calls_of(std::string_view op) const {
    int64_t calls = 0;
    for (const CallRecord& call : session->trace.calls) calls += session->trace.text(call.op) == op;
    return calls;
  }
  int64_t flops() const {
    int64_t sum = 0;
    for (const CallRecord& call : session->trace.calls) sum += call.counted.count;
    return sum;
  }

  std::unique_ptr<Session> session;
  Tensor w1, w2, x;
};

int main() {
  {
    Network net;
    const Tensor outputs[] = {net.loss()}, inputs[] = {net.x};
    grad(*net.session, outputs, inputs);
    std::cout << "gradient of x: " << net.flops() << " FLOPs\n";
  }
  {
    Network net;
    const Tensor loss = net.loss();
    const Tensor outputs[] = {loss}, inputs[] = {net.x};
    const Tensor gradient = grad(*net.session, outputs, inputs, {}, {.create_graph = true})[0];
    const Tensor penalty = call<"sum">(*net.session, call<"pow.Tensor_Scalar">(*net.session, gradient, 2));
    const Tensor roots[] = {call<"add.Tensor">(*net.session, loss, penalty)};
    backward(*net.session, roots);
    std::cout << "gradient penalty: " << net.flops() << " FLOPs\n";
  }
  {
    Network net;
    const Tensor outputs[] = {net.loss()}, inputs[] = {net.x};
    const Gradients gradients = grad(*net.session, outputs, inputs, {}, {.create_graph = true});
    const Tensor vectors[] = {call<"ones_like">(*net.session, gradients[0])};
    grad(*net.session, gradients, inputs, vectors);
    std::cout << "Hessian-vector product: " << net.flops() << " FLOPs\n";
  }
  {
    Network net;
    Tensor loss;
    {
      const SavedTensorHooksScope hooks(*net.session, save_on_host(*net.session));
      loss = net.loss();
    }
    const Tensor roots[] = {loss};
    backward(*net.session, roots);
    std::cout << "copies to the host and back: " << net.calls_of("aten::_to_copy") << "\n";
  }
  {
    Network net;
    const auto keeps_products = [](const Call& call, bool) {
      return call.op.name == "aten::mm" ? CheckpointPolicy::must_save : CheckpointPolicy::prefer_recompute;
    };
    const auto body = [&](const std::vector<Value>& in) {
      return std::vector<Value>{Value(net.hidden(in[0].tensor()))};
    };
    const Tensor hidden =
        checkpoint(*net.session, body, {Value(net.x)}, {.policy = keeps_products})[0].tensor();
    const Tensor roots[] = {call<"sum">(*net.session, hidden)};
    backward(*net.session, roots);
    std::cout << "tanh was computed " << net.calls_of("aten::tanh") << " times\n";
  }
  {
    Network net;
    autograd_state(*net.session).anomaly = true;
    const Tensor roots[] = {net.loss()};
    backward(*net.session, roots);
    std::cout << "gradients looked through for NaN: " << net.calls_of("aten::isnan") << "\n";
  }
}
