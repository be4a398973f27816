#include "step/graphed_callables.h"

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/function_node.h"
#include "meta/autograd/graph/views.h"
#include "meta/ops/rules/capture.h"
#include "meta/platform/platform.h"
#include "step/training_step.h"

namespace metaprof {
namespace {

constexpr uint16_t kWarmUp = 1, kSharedCapture = 2;

class Callables {
 public:
  Callables(const Program& program, const Program& traced, const Platform& platform,
            const StepOptions& options)
      : traced_(traced),
        options_(options),
        training_(program, platform, options),
        session_(training_.session()) {}

  GraphedCallables run(int warmup) {
    result_.set_up = now();
    result_.stream = session_.platform.framework.captures_callables_on_warm_stream ? kWarmUp : kSharedCapture;
    result_.warm_up_joins = result_.stream != kWarmUp;
    {
      const Scoped<uint16_t> on_stream(session_.stream, kWarmUp);
      for (int step = 0; step < warmup; ++step) warm_up(step);
    }
    training_.run_instead(traced_);
    capture(warmup);
    result_.captured = now();
    for (int step = 0; step < options_.steps; ++step) replay(step);
    result_.trace = training_.finish();
    return std::move(result_);
  }

 private:
  size_t now() { return session_.trace.events.size(); }

  Tensor like_loss() {
    const Tensor& loss = training_.loss();
    return session_.empty(loss.sizes(), loss.dtype(), loss.device());
  }

  // The gradients of the step before are held until these exist.
  void take_gradients(const Tensor& gradient_of_loss, int step) {
    session_.begin_phase(Phase::backward, static_cast<uint32_t>(step), -1);
    const Tensor outputs[] = {training_.loss()}, given[] = {gradient_of_loss};
    gradients_ = grad(session_, outputs, training_.placed().trainable, given);
  }

  void warm_up(int step) {
    training_.forward(step, -1);
    take_gradients(like_loss(), step);
  }

  template <class Run>  // Run()
  GraphedCallables::Capture captured(const Run& run) {
    GraphedCallables::Capture places;
    places.begin = now();
    const Scoped<uint16_t> on_stream(session_.stream, result_.stream);
    GraphGenerator& generator = generators_.emplace_back();
    generator = generators_.size() == 1 ? make_graph_generator(session_) : generators_.front();
    if (session_.platform.framework.makes_graph_seed_on_first_use) generator = {};
    places.recording = now();
    const StreamCapture capture(session_, generator);
    run();
    places.end = now();
    return places;
  }

  // What the last step to warm up has made lives on: its loss until the function returns, its gradients until the
  // backward is captured.
  void capture(int step) {
    const Tensor warm_loss = training_.loss();
    result_.forward = captured([&] { training_.forward(step, -1); });
    gradient_of_loss_ = like_loss();
    gradients_.clear();
    result_.backward = captured([&] { take_gradients(gradient_of_loss_, step); });
  }

  // Outputs and gradients are the captured ones, under new handles (Graphed in torch/cuda/graphs.py).
  void replay(int step) {
    if (training_.has_optimizer()) training_.zero_grad(step);
    session_.begin_phase(Phase::backward, static_cast<uint32_t>(step), -1);
    backward_of(alias(training_.loss()));
    if (training_.has_optimizer()) training_.update(step);
  }

  void backward_of(const Tensor& loss) {
    auto node = make<FunctionNode>(session_, "GraphedBackward", [this](Gradients&) {
      Gradients captured;
      for (const Tensor& gradient : gradients_)
        captured.push_back(gradient.defined() ? alias(gradient) : gradient);
      return captured;
    });
    for (const Tensor& parameter : training_.placed().trainable) node->add_next(gradient_edge(parameter));
    set_gradient_edge(loss, {Ref<Node>(node), node->add_output(loss)});
    node->record_edges();
    const Tensor roots[] = {loss};
    backward(session_, roots);
  }

  const Program& traced_;
  const StepOptions& options_;
  TrainingStep training_;
  Session& session_;
  Gradients gradients_;
  Tensor gradient_of_loss_;
  std::vector<GraphGenerator> generators_;
  GraphedCallables result_;
};

}  // namespace

GraphedCallables run_graphed_callables(const Program& program, const Program& traced,
                                       const Platform& platform, const StepOptions& options, int warmup) {
  return Callables(program, traced, platform, options).run(warmup);
}

}  // namespace metaprof
