#include "tests/numbers/gradcheck.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "meta/autograd/engine/engine.h"

namespace metaprof {
namespace {

constexpr double kStep = 1e-6;
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-5, kAbsoluteSecond = 1e-4;
constexpr int64_t kElements = 24, kElementsSecond = 10;  // of each input, evenly spread

// L = Σ weights · results: what is differentiated.
double weighted(ExampleProgram& program, const std::vector<Tensor>& results,
                const std::vector<Tensor>& weights) {
  double sum = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !weights[i].defined()) continue;
    const std::vector<double> a = program.values(results[i]), b = program.values(weights[i]);
    for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  }
  return sum;
}

// Compares the gradient of one input with differences of `loss`. The first difference, or nothing.
std::string compare(ExampleProgram& program, const Tensor& input, const std::string& name,
                    const Tensor& gradient, const std::function<double()>& loss, double absolute,
                    int64_t at_most, int& compared) {
  const std::vector<double> analytic =
      gradient.defined() ? program.values(gradient) : std::vector<double>(size_t(input.numel()), 0.0);
  const int64_t stride = std::max<int64_t>(1, input.numel() / at_most);
  for (int64_t k = 0; k < input.numel(); k += stride) {
    const double before = program.element(input, k);
    program.element(input, k) = before + kStep;
    const double above = loss();
    program.element(input, k) = before - kStep;
    const double below = loss();
    program.element(input, k) = before;
    const double numeric = (above - below) / (2 * kStep);
    ++compared;
    const double error = std::abs(analytic[size_t(k)] - numeric);
    if (!(error <= absolute + kRelative * std::abs(numeric)))
      return fmt::format("{} element {} (at {:.6g}): gradient {:.8g}, differences give {:.8g}", name, k,
                         before, analytic[size_t(k)], numeric);
  }
  return {};
}

std::vector<Tensor> weights_for(ExampleProgram& program, const std::vector<Tensor>& results, uint32_t seed) {
  std::vector<Tensor> weights;
  weights.reserve(results.size());
  for (const Tensor& result : results)
    weights.push_back(result.defined() ? program.weights(result.sizes(), seed++) : Tensor());
  return weights;
}

std::string check_first(ExampleProgram& program, int& compared) {
  Session& session = *program.session;
  const std::vector<Tensor> results = ExampleProgram::differentiable(program.evaluate());
  const std::vector<Tensor> weights = weights_for(program, results, 0);
  const Gradients gradients =
      grad(session, results, program.inputs, weights, {.retain_graph = true, .allow_unused = true});
  auto loss = [&] { return weighted(program, ExampleProgram::differentiable(program.evaluate()), weights); };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const std::string name = fmt::format("input {}", i);
    // A composite operator says only by its body which arguments it differentiates.
    if (program.op.record.meta.composite && !gradients[i].defined()) continue;
    std::string failure =
        compare(program, program.inputs[i], name, gradients[i], loss, kAbsolute, kElements, compared);
    if (!failure.empty()) return failure;
    // Alone, rows that other inputs need are left out.
    const Gradients alone = grad(session, results, std::span(&program.inputs[i], 1), weights,
                                 {.retain_graph = true, .allow_unused = true});
    if (alone[0].defined() != gradients[i].defined() ||
        (alone[0].defined() && program.values(alone[0]) != program.values(gradients[i])))
      return name + ": another gradient if it is the only one asked for";
  }
  // Each result alone: the gradients of the others are undefined.
  for (size_t r = 0; r < results.size() && results.size() > 1; ++r) {
    const Gradients of_one = grad(session, std::span(&results[r], 1), program.inputs,
                                  std::span(&weights[r], 1), {.retain_graph = true, .allow_unused = true});
    auto one = [&] {
      const std::vector<Tensor> again = ExampleProgram::differentiable(program.evaluate());
      return weighted(program, {again[r]}, {weights[r]});
    };
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.op.record.meta.composite && !of_one[i].defined()) continue;
      std::string failure = compare(program, program.inputs[i], fmt::format("input {} of result {}", i, r),
                                    of_one[i], one, kAbsolute, kElements, compared);
      if (!failure.empty()) return failure;
    }
  }
  return {};
}

std::string check_second(ExampleProgram& program, Checked& checked) {
  Session& session = *program.session;
  const std::vector<Tensor> weights =
      weights_for(program, ExampleProgram::differentiable(program.evaluate()), 0);
  auto first = [&](bool create_graph) {
    const std::vector<Tensor> results = ExampleProgram::differentiable(program.evaluate());
    const Gradients gradients =
        grad(session, results, program.inputs, weights, {.create_graph = create_graph, .allow_unused = true});
    return std::vector<Tensor>(gradients.begin(), gradients.end());
  };
  const std::vector<Tensor> gradients = first(true);
  const std::vector<Tensor> outer = weights_for(program, gradients, 5);
  std::vector<Tensor> roots, root_weights, inputs = program.inputs;
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].requires_grad()) continue;
    roots.push_back(gradients[i]);
    root_weights.push_back(outer[i]);
  }
  Gradients second;
  if (roots.empty()) {
    second.resize(inputs.size());
  } else {
    second = grad(session, roots, inputs, root_weights, {.allow_unused = true});
  }
  auto loss = [&] { return weighted(program, first(false), outer); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_input = i < program.inputs.size();
    if (is_input && program.op.record.meta.composite && !gradients[i].defined()) continue;
    const std::string name = fmt::format("second derivative, {} {}", is_input ? "input" : "incoming gradient",
                                         is_input ? i : i - program.inputs.size());
    std::string failure = compare(program, inputs[i], name, second[i], loss, kAbsoluteSecond, kElementsSecond,
                                  checked.second_gradients);
    if (!failure.empty()) return failure;
  }
  return {};
}

// Refusals that the framework shares.
bool is_refusal(std::string_view message) {
  return message.find("the framework has no derivative") != std::string_view::npos ||
         message.find("cannot be written in place") != std::string_view::npos;
}

}  // namespace

Checked gradcheck(const Operator& op, std::string_view example, const char* device,
                  FrameworkVersion framework) {
  Checked checked;
  try {
    ExampleProgram program(op, example, {.device = device, .framework = framework});
    if (program.inputs.empty()) {
      checked.not_checked = "no input is real and takes a gradient";
      return checked;
    }
    program.fill();
    const std::vector<Tensor> results = ExampleProgram::differentiable(program.evaluate());
    if (results.empty()) {
      checked.not_checked = "no result requires grad";
      return checked;
    }
    for (const Tensor& result : results)
      if (is_complex(result.dtype())) throw NoNumbers("complex results: differences are taken of real ones");
    checked.failure = check_first(program, checked.gradients);
    if (!checked.failure.empty()) return checked;
    try {
      checked.failure = check_second(program, checked);
    } catch (const NoNumbers& error) {
      checked.no_second = error.what();
    } catch (const Error& error) {
      if (!is_refusal(error.what())) throw;
      checked.no_second = error.what();
    }
  } catch (const NoNumbers& error) {
    checked.not_checked = error.what();
  } catch (const Error& error) {
    if (is_refusal(error.what())) {
      checked.not_checked = error.what();
    } else {
      checked.failure = error.what();
    }
  }
  return checked;
}

}  // namespace metaprof
