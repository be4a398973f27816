#include "program/config/layers/blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace metaprof::configs {
namespace {

Tensor gelu_erf(Tensor x) { return nn::gelu(std::move(x)); }
Tensor gelu_tanh(Tensor x) { return nn::gelu(std::move(x), "tanh"); }

// 0.5 * x * (1.0 + tanh(sqrt(2 / pi) * (x + 0.044715 * pow(x, 3))))
Tensor gelu_new(Tensor x) {
  Tensor half = x * 0.5;
  Tensor cubed = x + nn::pow(x, 3) * 0.044715;
  return std::move(half) * (nn::tanh(std::move(cubed) * 0.7978845608028654) + 1.0);
}

// 0.5 * x * (1.0 + tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))
Tensor gelu_fast(Tensor x) {
  Tensor half = x * 0.5;
  Tensor scaled = x * 0.7978845608;
  Tensor inner = (x * 0.044715) * x + 1.0;
  return std::move(half) * (nn::tanh(std::move(scaled) * std::move(inner)) + 1.0);
}

// x * sigmoid(1.702 * x)
Tensor quick_gelu(Tensor x) { return x * nn::sigmoid(x * 1.702); }

struct NamedActivation {
  std::string_view name, type;
  Tensor (*function)(Tensor);
};
constexpr NamedActivation kActivations[] = {
    {"silu", "transformers.activations.SiLUActivation", nn::silu},
    {"swish", "transformers.activations.SiLUActivation", nn::silu},
    {"gelu", "transformers.activations.GELUActivation", gelu_erf},
    {"gelu_pytorch_tanh", "transformers.activations.GELUTanh", gelu_tanh},
    {"gelu_new", "transformers.activations.NewGELUActivation", gelu_new},
    {"gelu_fast", "transformers.activations.FastGELUActivation", gelu_fast},
    {"quick_gelu", "transformers.activations.QuickGELUActivation", quick_gelu},
    {"relu", "torch.nn.modules.activation.ReLU", nn::relu},
    {"tanh", "torch.nn.modules.activation.Tanh", nn::tanh},
    {"sigmoid", "torch.nn.modules.activation.Sigmoid", nn::sigmoid},
};

const NamedActivation& activation_named(const std::string& name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const NamedActivation& known : kActivations) {
    if (known.name == name) return known;
    names.push_back(known.name);
  }
  fail("{}: the activation '{}' is not known; known are {}", where, name, fmt::join(names, ", "));
}

Tensor turned(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  Tensor straight = x * cosines;
  return std::move(straight) + rotate_half(x) * sines;
}

// A part of each head, and what follows it unturned.
Tensor turned_part(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const int64_t width = cosines.size(-1);
  const Tensor part = nn::slice(x, 3, 0, width);
  const Tensor rest = nn::slice(x, 3, width, nn::kEnd);
  return nn::cat({turned(part, cosines, sines), rest}, -1);
}

}  // namespace

std::string FamilyName::type(std::string_view suffix) const {
  return fmt::format("transformers.models.{0}.modeling_{0}.{1}{2}", module, prefix, suffix);
}

Activation::Activation(const Place& place, const std::string& name, const std::string& where)
    : Module(place, std::string(activation_named(name, where).type)),
      function(activation_named(name, where).function) {}

Tensor Activation::forward(Tensor x) const { return function(std::move(x)); }

RmsNorm::RmsNorm(const Place& place, std::string type, int64_t width, double epsilon, Kind kind)
    : Module(place, std::move(type)), weight(parameter("weight", {width})), epsilon(epsilon), kind(kind) {}

Tensor RmsNorm::forward(Tensor x) const {
  if (kind == Kind::one_plus) {
    Tensor wide = nn::to(x, DType::f32);
    Tensor output = wide * nn::rsqrt(nn::mean(nn::pow(wide, 2), -1, true) + epsilon);
    wide = {};
    output = std::move(output) * (nn::to(weight, DType::f32) + 1.0);
    return nn::call("type_as", std::move(output), std::move(x));
  }
  const nn::DTypeOf input_dtype = x.dtype();
  x = nn::to(x, DType::f32);
  const Tensor variance = nn::mean(nn::pow(x, 2), -1, true);
  x = x * nn::rsqrt(variance + epsilon);
  if (kind == Kind::scaled_before) return nn::to(weight * x, input_dtype);
  return weight * nn::to(x, input_dtype);
}

RotaryEmbedding::RotaryEmbedding(const Place& place, std::string type, int64_t width,
                                 const std::vector<std::string>& names)
    : Module(place, std::move(type)) {
  for (const std::string& name : names) {
    frequencies.push_back(buffer(name + "inv_freq", {(width + 1) / 2}, DType::f32, false));
    (void)buffer(name + "original_inv_freq", {(width + 1) / 2}, DType::f32, false);
  }
}

Rotation RotaryEmbedding::forward(Tensor x, Tensor positions, size_t table) const {
  Tensor frequency = nn::expand(nn::unsqueeze(nn::unsqueeze(frequencies[table], 0), 2), {1, -1, 1});
  frequency = nn::call("to.device", std::move(frequency), kModelDevice, DType::f32);
  const Tensor position = nn::to(nn::unsqueeze(positions, 1), DType::f32);
  const nn::WithoutAutocast off(recording());
  const Tensor angles = nn::transpose(nn::matmul(frequency, position), 1, 2);
  if (complex) {
    const Tensor lengths = nn::call("ones_like", angles);
    return {nn::call("polar", lengths, angles) * 1.0, Tensor()};
  }
  const Tensor all = doubled ? nn::cat({angles, angles}, -1) : angles;
  const Tensor cosines = nn::call("cos", all) * 1.0;
  const Tensor sines = nn::call("sin", all) * 1.0;
  if (keeps_32bits) return {cosines, sines};
  Tensor narrow = nn::to(cosines, x.dtype());
  return {std::move(narrow), nn::to(sines, x.dtype())};
}

Tensor rotate_half(Tensor x) {
  const int64_t last = x.dim() - 1, half = x.size(-1) / 2;
  const Tensor first = nn::slice(x, last, 0, half);
  const Tensor second = nn::slice(x, last, half, nn::kEnd);
  return nn::cat({-second, first}, -1);
}

Rotation rotated(Tensor query, Tensor key, Tensor cosines, Tensor sines, bool converts) {
  const nn::DTypeOf query_type = query.dtype(), key_type = key.dtype();
  cosines = nn::unsqueeze(std::move(cosines), 1);
  sines = nn::unsqueeze(std::move(sines), 1);
  const bool whole = cosines.size(-1) == query.size(-1);
  Tensor turned_query = whole ? turned(query, cosines, sines) : turned_part(query, cosines, sines);
  Tensor turned_key = whole ? turned(key, cosines, sines) : turned_part(key, cosines, sines);
  if (!converts) return {std::move(turned_query), std::move(turned_key)};
  Tensor converted = nn::to(turned_query, query_type);
  return {std::move(converted), nn::to(turned_key, key_type)};
}

Tensor positions_of(const nn::AnyModule& module, int64_t length) {
  return nn::unsqueeze(nn::call("add.Tensor", module.arange(length), 0), 0);
}

Tensor split_heads(Tensor x, int64_t width) {
  const Sizes sizes{x.size(0), x.size(1), -1, width};
  return nn::transpose(nn::view(std::move(x), sizes), 1, 2);
}

Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const nn::Attention& attention) {
  Tensor output = nn::scaled_dot_product_attention(query, key, value, attention);
  return nn::contiguous(nn::transpose(std::move(output), 1, 2));
}

Tensor sum_of_means(const std::vector<Tensor>& outputs) {
  Tensor sum;
  for (const Tensor& output : outputs) {
    Tensor mean = nn::call("mean", output);
    sum = sum.defined() ? std::move(sum) + std::move(mean) : mean;
  }
  return sum;
}

Tensor token_loss(const Tensor& logits, const Tensor& labels) {
  Tensor flat = nn::reshape(logits, {-1, logits.size(-1)});
  return nn::cross_entropy(std::move(flat), nn::reshape(labels, {-1}));
}

Tensor next_token_loss(const Tensor& logits, const Tensor& labels) {
  constexpr int64_t kIgnored = -100;
  Tensor copy = nn::to(logits, DType::f32);
  const Tensor padded = nn::call("constant_pad_nd", labels, Sizes{0, 1}, kIgnored);
  Tensor next = nn::contiguous(nn::slice(padded, 1, 1, nn::kEnd));
  const Tensor flat = nn::view(std::move(copy), {-1, logits.size(-1)});
  next = nn::view(std::move(next), {-1});
  return nn::cross_entropy(flat, next);
}

}  // namespace metaprof::configs
