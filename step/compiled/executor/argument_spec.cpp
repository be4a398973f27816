#include "step/compiled/executor/argument_spec.h"

#include <algorithm>

namespace metaprof::ir {
namespace {

// Tensors count, and whatever may be None.
bool counts(const Type& type) { return type.is_tensor() || type.optional; }

ArgumentState state_of(const Type& type, const Constant& argument, bool gradients) {
  ArgumentState state;
  state.given = !type.optional || !argument.is_none();
  if (!type.is_tensor()) return state;
  const Tensor& tensor = argument.tensor();
  state.defined = tensor.defined();
  if (!state.defined) return state;
  state.requires_grad = gradients && tensor.requires_grad();
  state.dtype = tensor.dtype();
  state.device = tensor.device().type;
  state.rank = static_cast<uint8_t>(tensor.dim());
  return state;
}

bool any_requires_grad(const Constant& list) {
  if (!list.is_tensors()) return false;
  return std::ranges::any_of(list.tensors(), [](const Tensor& tensor) { return tensor.requires_grad(); });
}

size_t packed(const ArgumentState& state) {
  return size_t{state.given} | size_t{state.defined} << 1 | size_t{state.requires_grad} << 2 |
         static_cast<size_t>(static_cast<uint8_t>(state.dtype)) << 8 |
         static_cast<size_t>(static_cast<uint8_t>(state.device)) << 16 | size_t{state.rank} << 24;
}

}  // namespace

ArgumentSpec::ArgumentSpec(const Graph& graph, std::span<const Constant> arguments, bool gradients)
    : gradients_(false), hash_(0) {
  const auto& inputs = graph.block().inputs();
  arguments_.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->type.is_tensors()) gradients_ |= gradients && any_requires_grad(arguments[i]);
    if (!counts(inputs[i]->type)) continue;
    arguments_.push_back(state_of(inputs[i]->type, arguments[i], gradients));
    gradients_ |= arguments_.back().requires_grad;
    hash_ = (hash_ ^ packed(arguments_.back())) * 0x9e3779b97f4a7c15ULL;
  }
  hash_ = (hash_ ^ size_t{gradients_}) * 0x9e3779b97f4a7c15ULL;
}

void ArgumentSpec::specialise(Graph& graph) const {
  auto state = arguments_.begin();
  for (const auto& input : graph.block().inputs()) {
    if (!counts(input->type)) continue;
    const ArgumentState& known = *state++;
    if (!input->type.is_tensor()) {
      if (!known.given) input->type = Type::Kind::none;
      continue;
    }
    TensorDetail& tensor = input->type.tensor;
    tensor = {};
    tensor.defined = known.defined;
    tensor.requires_grad = known.requires_grad;
    if (!known.defined) continue;
    tensor.dtype = known.dtype;
    tensor.device = known.device;
    tensor.rank = known.rank;
  }
}

std::string to_string(const ArgumentSpec& spec) {
  std::string text = spec.gradients() ? "with gradients" : "without gradients";
  for (const ArgumentState& state : spec.arguments()) {
    TensorDetail tensor;
    if (state.given && state.defined) {
      tensor.dtype = state.dtype;
      tensor.device = state.device;
      tensor.rank = state.rank;
      tensor.requires_grad = state.requires_grad;
    } else {
      tensor.defined = false;
    }
    text += "; " + to_string(Type(tensor));
  }
  return text;
}

}  // namespace metaprof::ir
