#include "tests/numbers/example_program.h"

#include <cmath>

#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// Buffers that training writes (running_mean, running_var): no gradient, and a copy for each call.
bool is_buffer(const Argument& argument) { return argument.name.starts_with("running_"); }

bool takes_gradient(const Operator& op, size_t argument) {
  if (op.record.meta.composite) return !is_buffer(op.schema.arguments[argument]);
  return std::find(op.differentiable.begin(), op.differentiable.end(), argument) != op.differentiable.end();
}

// Distinct numbers, none within 0.01 of a multiple of 1/4, where functions have kinks and poles.
double drawn(const Draw& draw, int64_t index, uint32_t seed) {
  const double unit =
      std::fmod(0.6180339887498949 * double(index + 1) + 0.2718281828 * double(seed + 1), 1.0);
  double value = draw.low + (draw.high - draw.low) * unit;
  const double nearest = std::round(value * 4) / 4;
  if (std::abs(value - nearest) < 0.01)
    value = nearest + (value < nearest ? -0.01 : 0.01) + (value - nearest) / 4;
  return value;
}

constexpr std::pair<double, double> kIntervals[] = {{-2, 2}, {0.1, 0.9}, {1.1, 2.9}};
constexpr int64_t kIntegerBounds[] = {INT64_MAX, 64, 16, 5, 4, 3, 2, 1};

// Kernels that do not check the indices that they are given.
bool trusts_indices(const Operator& op) {
  return op.name.find("_with_indices_backward") != std::string::npos ||
         (op.name.find("_embedding_bag") != std::string::npos &&
          op.name.find("backward") != std::string::npos);
}

}  // namespace

ExampleProgram::ExampleProgram(const Operator& op, std::string_view example, const ExampleOptions& options)
    : op(op),
      session(make_session(with_framework(platform_named(options.device), options.framework))),
      numbers(std::make_unique<CpuNumbers>(*session)),
      arguments(example_arguments(*session, op, example, false)) {
  auto prepare = [&](const Tensor& tensor, size_t argument) {
    if (!tensor.defined()) return tensor;
    const bool floating = is_floating(tensor.dtype());
    const DType dtype = floating && options.double_precision ? DType::f64 : tensor.dtype();
    // Elements that share memory cannot be moved one by one.
    Tensor made = options.double_precision && !tensor->dense
                      ? session->empty(tensor.sizes(), dtype, tensor.device())
                      : session->empty_strided(tensor.sizes(), tensor.strides(), dtype, tensor.device());
    made->requires_grad = options.gradients && floating && takes_gradient(op, argument);
    if (made->requires_grad) inputs.push_back(made);
    return made;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_tensor()) arguments[i] = Value(prepare(arguments[i].tensor(), i));
    if (arguments[i].is_tensors()) {
      Value::Tensors list;
      for (const Tensor& tensor : arguments[i].tensors()) list.push_back(prepare(tensor, i));
      arguments[i] = Value(std::move(list));
    }
    if (op.schema.arguments[i].type == Type::dtype && !arguments[i].is_none() && options.double_precision)
      if (is_floating(*dtype_numbered(arguments[i].integer()))) arguments[i] = Value(DType::f64);
  }
}

void ExampleProgram::fill_tensor(const Tensor& tensor, const Draw& draw, uint32_t seed, Domain domain) {
  if (!tensor.defined()) return;
  at::Tensor data = numbers->of(tensor);
  at::Tensor values = data.to(at::kDouble).contiguous();  // a tensor of that geometry; its numbers go
  auto* to = values.data_ptr<double>();
  const int64_t below = std::min(draw.integers_below, std::max<int64_t>(tensor.numel(), 1));
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (is_differentiable(tensor.dtype())) {
      to[i] = drawn(draw, i, seed);
    } else if (domain == Domain::pivots) {
      to[i] = double(pivot(i, tensor.size(-1)));
    } else if (domain == Domain::lengths) {
      to[i] = 5;
    } else if (tensor.dtype() == DType::b8) {
      to[i] = i % 3 != 1;
    } else {
      to[i] = double(i % below);
    }
  }
  data.copy_(values);
}

void ExampleProgram::fill_with(const Draw& draw) {
  uint32_t seed = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = arguments[i];
    if (value.is_tensor()) fill_tensor(value.tensor(), draw, seed++, domain_of(op, i));
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors()) fill_tensor(tensor, draw, seed++);
  }
}

bool ExampleProgram::is_finite(const Results& results) {
  auto check = [&](const Tensor& tensor) {
    if (!tensor.defined() || !is_floating(tensor.dtype())) return true;
    for (double value : values(tensor))
      if (!std::isfinite(value)) return false;
    return true;
  };
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& value = results.value(i);
    if (value.is_tensor() && !check(value.tensor())) return false;
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors())
        if (!check(tensor)) return false;
  }
  return true;
}

void ExampleProgram::fill(bool finite) {
  std::string refusal = "results are not finite";
  for (int64_t integers : kIntegerBounds) {
    if (trusts_indices(op) && integers > 2) continue;
    for (auto [low, high] : kIntervals) {
      fill_with({low, high, integers});
      try {
        if (is_finite(evaluate()) || !finite) return;
      } catch (const NoNumbers& error) {
        refusal = error.what();
      }
    }
  }
  throw NoNumbers(refusal);
}

std::vector<Value> ExampleProgram::fresh_arguments() {
  std::vector<Value> given = arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    const Argument& argument = op.schema.arguments[i];
    if (given[i].is_tensor()) given[i] = Value(brought_into(domain_of(op, i), *session, given[i].tensor()));
    if (!argument.written && !is_buffer(argument)) continue;
    auto copied = [&](const Tensor& tensor) {
      return tensor.defined() ? call<"clone">(*session, tensor, Value()) : tensor;
    };
    if (given[i].is_tensor()) given[i] = Value(copied(given[i].tensor()));
    if (given[i].is_tensors()) {
      Value::Tensors list;
      for (const Tensor& tensor : given[i].tensors()) list.push_back(copied(tensor));
      given[i] = Value(std::move(list));
    }
  }
  return given;
}

Results ExampleProgram::evaluate() {
  CpuNumbers::seed(1);
  std::vector<Value> given = fresh_arguments();
  return invoke(*session, op, given);
}

std::vector<Tensor> ExampleProgram::differentiable(const Results& results) {
  std::vector<Tensor> roots;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& value = results.value(i);
    if (value.is_tensor() && value.tensor().requires_grad()) roots.push_back(value.tensor());
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors())
        if (tensor.requires_grad()) roots.push_back(tensor);
  }
  return roots;
}

std::vector<double> ExampleProgram::values(const Tensor& tensor) {
  const at::Tensor data = numbers->of(tensor).to(at::kDouble).contiguous().resolve_neg();
  const auto* from = data.data_ptr<double>();
  return {from, from + data.numel()};
}

double& ExampleProgram::element(const Tensor& tensor, int64_t index) {
  int64_t place = 0;
  for (size_t d = tensor.sizes().size(); d-- > 0;) {
    place += index % tensor.sizes()[d] * tensor.strides()[d];
    index /= tensor.sizes()[d];
  }
  return numbers->of(tensor).data_ptr<double>()[place];
}

Tensor ExampleProgram::weights(SizesView sizes, uint32_t seed) {
  Tensor tensor = session->empty(sizes, DType::f64);
  fill_tensor(tensor, {-1, 1, 1}, seed + 17);
  tensor->requires_grad = true;
  return tensor;
}

}  // namespace metaprof
