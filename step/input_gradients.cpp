#include "step/input_gradients.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"

namespace metaprof {
namespace {

bool is_floating_input(const Program& program, const PlacedTensors& placed, size_t i) {
  const Value& value = placed.inputs[i];
  return program.inputs[i].kind == ProgramInput::Kind::user && value.is_tensor() &&
         value.tensor().defined() && is_differentiable(value.tensor().dtype());
}

std::vector<std::string> names_in(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::istringstream words(text);
  std::vector<std::string> names;
  for (std::string word; words >> word;) names.push_back(word);
  return names;
}

Tensor input_named(const Program& program, const PlacedTensors& placed, const std::string& name) {
  std::vector<std::string> possible;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (!is_floating_input(program, placed, i)) continue;
    if (program.inputs[i].name == name) return placed.inputs[i].tensor();
    possible.push_back(program.inputs[i].name);
  }
  if (possible.empty()) fail("--grad: no input of {} is floating", program.origin);
  fail("--grad: '{}' is no floating input of {}; they are: {}", name, program.origin,
       fmt::join(possible, ", "));
}

void check(const StepOptions& options) {
  if (options.mode != Mode::train) fail("--grad: --mode {} has no backward", to_string(options.mode));
  if (options.precision == Precision::amp_fp16)
    fail("--grad: with --precision amp-fp16 the gradients would have to be unscaled by hand; take amp-bf16");
  if (options.create_graph && options.hvp)
    fail(
        "--hvp and --create-graph: a step takes the gradient penalty or the Hessian's product; leave out "
        "one");
}

}  // namespace

InputGradients::InputGradients(Session& session, const Program& program, const StepOptions& options,
                               const PlacedTensors& placed)
    : session_(session), options_(options) {
  check(options);
  for (const std::string& name : names_in(options.grad))
    inputs_.push_back(input_named(program, placed, name));
  if (inputs_.empty()) fail("--grad: names of inputs are expected, as --grad x,y");
  for (Tensor& input : inputs_) input->requires_grad = true;
}

// What a name held goes when the name is bound again, so each result is made before the last one goes.
void InputGradients::differentiate(const Tensor& loss) {
  const Tensor outputs[] = {loss};
  gradients_ = grad(session_, outputs, inputs_, {}, {.create_graph = options_.create_graph || options_.hvp});
  if (options_.create_graph) penalise(loss);
  if (options_.hvp) multiply_by_hessian();
}

// penalty = sum(g.pow(2).sum() for g in gradients); (loss + penalty).backward()
void InputGradients::penalise(const Tensor& loss) {
  Tensor sum;
  for (const Tensor& gradient : gradients_) {
    const Tensor square = call<"sum">(session_, call<"pow.Tensor_Scalar">(session_, gradient, 2));
    sum = sum.defined() ? call<"add.Tensor">(session_, sum, square) : call<"add.Tensor">(session_, square, 0);
  }
  penalty_ = std::move(sum);
  const Tensor roots[] = {call<"add.Tensor">(session_, loss, penalty_)};
  backward(session_, roots);
}

// vectors = [torch.ones_like(g) for g in gradients]; products = torch.autograd.grad(gradients, inputs, vectors)
void InputGradients::multiply_by_hessian() {
  Gradients vectors;
  for (const Tensor& gradient : gradients_) vectors.push_back(call<"ones_like">(session_, gradient));
  vectors_ = std::move(vectors);
  products_ = grad(session_, gradients_, inputs_, vectors_);
}

}  // namespace metaprof
