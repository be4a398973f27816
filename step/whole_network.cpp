#include "step/whole_network.h"

#include "meta/ops/rules/capture.h"
#include "step/training_step.h"

namespace metaprof {
namespace {

constexpr uint16_t kWarmUpStream = 1;

class WholeNetwork {
 public:
  WholeNetwork(const Program& program, const Program& traced, const Platform& platform,
               const StepOptions& options)
      : program_(program), traced_(traced), options_(options), training_(program, platform, options) {}

  WholeNetworkTrace run(int warmup) {
    Session& session = training_.session();
    result_.set_up = now();
    result_.inputs = bytes_of_inputs();
    {
      const Scoped<uint16_t> on_stream(session.stream, kWarmUpStream);
      for (int step = 0; step < warmup; ++step) {
        if (training_.has_optimizer()) training_.zero_grad(step);
        run_step(step);
      }
    }
    result_.warm = now();
    if (training_.has_optimizer()) training_.zero_grad(warmup);
    training_.drop_loss();
    training_.run_instead(traced_);
    capture(warmup);
    result_.trace = training_.finish();
    return std::move(result_);
  }

 private:
  size_t now() { return training_.session().trace.events.size(); }

  Bytes bytes_of_inputs() {
    Bytes bytes;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Value& input = training_.placed().inputs[i];
      if (program_.inputs[i].kind != ProgramInput::Kind::user || !input.is_tensor()) continue;
      const Tensor& tensor = input.tensor();
      if (tensor->device == training_.session().device)
        bytes.count += tensor->numel * element_size(tensor->dtype);
    }
    return bytes;
  }

  void run_step(int step) {
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      const int number = options_.accumulate > 1 ? micro : -1;
      training_.forward(step, number);
      training_.backward(step, number);
    }
    if (training_.has_optimizer()) training_.update(step);
  }

  void capture(int step) {
    Session& session = training_.session();
    result_.capture = now();
    const Scoped<uint16_t> on_stream(session.stream, WholeNetworkTrace::kCaptureStream);
    generator_ = make_graph_generator(session);
    const StreamCapture capture(session, generator_);
    result_.recording = now();
    run_step(step);
    result_.captured = now();
  }

  const Program &program_, &traced_;
  const StepOptions& options_;
  TrainingStep training_;
  GraphGenerator generator_;
  WholeNetworkTrace result_;
};

}  // namespace

WholeNetworkTrace run_whole_network(const Program& program, const Program& traced, const Platform& platform,
                                    const StepOptions& options, int warmup) {
  return WholeNetwork(program, traced, platform, options).run(warmup);
}

}  // namespace metaprof
