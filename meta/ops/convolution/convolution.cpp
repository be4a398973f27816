// Convolutions, plain and transposed, of one to three spatial dimensions.

#include "meta/ops/convolution/convolution.h"

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/convolution/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// The arguments without copies: for geometry only.
Convolution described(const Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const int64_t dims = weight.dim() - 2;
  if (dims < 1 || dims > 3 || input.dim() != weight.dim())
    c.error(fmt::format("input and weight need the same 3 to 5 dimensions; got {} and {}", describe(input),
                        describe(weight)));
  Convolution v;
  static_cast<ConvolutionArguments&>(v) = convolution_arguments(c, dims);
  v.input = input;
  v.weight = weight;
  const int64_t expected = v.transposed ? weight.size(0) : multiply(weight.size(1), v.groups);
  if (input.size(1) != expected || weight.size(0) % v.groups != 0)
    c.error(fmt::format("the input has {} channels, the weight wants {} in {} groups; got {} and {}",
                        input.size(1), expected, v.groups, describe(input), describe(weight)));
  return v;
}

// As the backends see it: 1-D as 2-D, the input row-major.
Convolution seen_by_backend(Convolution v) {
  if (v.weight.dim() != 3) return v;
  const Tensor row_major(new TensorImpl(v.input.sizes(), contiguous_strides(v.input.sizes()), v.input.dtype(),
                                        v.input.device()));
  v.input = as_2d(row_major);
  v.weight = as_2d(v.weight);
  for (auto [list, value] :
       {std::pair{&v.stride, 1}, {&v.padding, 0}, {&v.dilation, 1}, {&v.output_padding, 0}})
    *list = Sizes{value, (*list)[0]};
  return v;
}

// Strides of a result in a format; of a 1-D one seen as [N,C,1,L].
Sizes strides_for(MemoryFormat format, const Sizes& sizes) {
  if (sizes.size() != 3) return strides_in(format, sizes);
  const Sizes strides = strides_in(format, Sizes{sizes[0], sizes[1], 1, sizes[2]});
  return {strides[0], strides[1], strides[3]};
}

void convolution_meta(Call& c) {
  const Convolution plain = described(c);
  const Sizes sizes = convolution_output_sizes(c, plain);
  const Convolution v = seen_by_backend(plain);
  const ConvolutionBackend backend = convolution_backend(c, v);
  const bool by_format = backend == ConvolutionBackend::cudnn || backend == ConvolutionBackend::host;
  const MemoryFormat format = by_format ? convolution_format(v.input, v.weight) : MemoryFormat::contiguous;
  c.output(sizes, strides_for(format, sizes), plain.input.dtype());
}

void convolution_backward_meta(Call& c) {
  const Tensor& grad = c.tensor("grad_output");
  const Convolution plain = described(c);
  const Sizes expected = convolution_output_sizes(c, plain);
  if (grad.sizes() != expected)
    c.error(fmt::format("the gradient should have sizes {}; got {}", to_string(SizesView(expected)),
                        describe(grad)));
  const ConvolutionGradients plan =
      plan_gradients(c, seen_by_backend(plain), grad.dim() == 3 ? as_2d(grad) : grad);
  const auto& wants = c["output_mask"].booleans();
  const Sizes &x = plain.input.sizes(), &w = plain.weight.sizes();
  if (wants[0])
    c.output(x, strides_for(plan.input_format, x), grad.dtype());
  else
    c.no_output();
  if (wants[1])
    c.output(w, strides_for(plan.weight_format, w), grad.dtype());
  else
    c.no_output();
  if (wants[2])
    c.output(Sizes{grad.size(1)}, grad.dtype());
  else
    c.no_output();
}

// torch.utils.flop_counter, conv_flop_count: per output position (of the input if transposed) one product
// with the whole weight. With groups the weight's gradient is over-counted `groups` times there; so it is
// here.
int64_t count(const Sizes& x, const Sizes& w, const Sizes& out, bool transposed) {
  const Sizes& positions = transposed ? x : out;
  int64_t flops = multiply(2, multiply(x[0], multiply(w[0], w[1])));
  for (size_t d = 2; d < w.size(); ++d) flops = multiply(flops, multiply(positions[d], w[d]));
  return flops;
}

Sizes swapped(Sizes sizes) {
  std::swap(sizes[0], sizes[1]);
  return sizes;
}

FlopCount convolution_flops(const Call& c) {
  return {.counted = count(c.tensor("input").sizes(), c.tensor("weight").sizes(), c.result_tensor().sizes(),
                           c.boolean("transposed"))};
}

FlopCount convolution_backward_flops(const Call& c) {
  const Sizes &x = c.tensor("input").sizes(), &w = c.tensor("weight").sizes();
  const Sizes& grad = c.tensor("grad_output").sizes();
  const bool transposed = c.boolean("transposed");
  const auto& wants = c["output_mask"].booleans();
  FlopCount flops;
  if (wants[0]) flops.counted += count(grad, w, x, !transposed);
  if (wants[1]) {
    // The framework's counter knows no groups here: it counts every channel with every other.
    const int64_t of_weight = transposed ? count(swapped(grad), swapped(x), swapped(w), false)
                                         : count(swapped(x), swapped(grad), swapped(w), false);
    flops.counted += of_weight;
    flops.own = of_weight / c.integer("groups") - of_weight;
  }
  return flops;
}

Gradients convolution_gradients(Backward& b) {
  const TensorImpl* bias = b.shape("bias");
  const Sizes bias_sizes = bias ? bias->sizes : Sizes{0};
  const Value::Booleans wants{b.wants("input"), b.wants("weight"), b.wants("bias")};
  Results gradients = call_all<"convolution_backward">(
      b.session, b.grad(), b("input"), b("weight"), bias_sizes, b["stride"], b["padding"], b["dilation"],
      b["transposed"], b["output_padding"], b["groups"], wants);
  return {gradients[0], gradients[1], gradients[2]};
}

// --- The functions that programs call.

// Adds the batch dimension that an unbatched input lacks, and takes it away again.
template <class Body>
void batched(Call& c, int64_t spatial_dims, Body body) {
  const Tensor& input = c.tensor("input");
  if (input.dim() == spatial_dims + 2) return c.result(body(input));
  if (input.dim() != spatial_dims + 1)
    c.error(fmt::format("expects an input of {} or {} dimensions, got {}", spatial_dims + 1, spatial_dims + 2,
                        describe(input)));
  const Tensor out = body(unsqueeze(input, 0));
  c.result(call<"squeeze.dim">(c.session, out, 0));
}

template <int64_t dims>
void conv_body(Call& c) {
  batched(c, dims, [&](const Tensor& input) {
    return call<"convolution">(c.session, input, c["weight"], c["bias"], c["stride"], c["padding"],
                               c["dilation"], false, Sizes(size_t(dims), 0), c["groups"]);
  });
}

template <int64_t dims>
void conv_transpose_body(Call& c) {
  batched(c, dims, [&](const Tensor& input) {
    return call<"convolution">(c.session, input, c["weight"], c["bias"], c["stride"], c["padding"],
                               c["dilation"], true, c["output_padding"], c["groups"]);
  });
}

template <int64_t dims>
void conv_padding_body(Call& c) {
  batched(c, dims, [&](const Tensor& input) {
    return call<"_convolution_mode">(c.session, input, c["weight"], c["bias"], c["stride"], c["padding"],
                                     c["dilation"], c["groups"]);
  });
}

// Padding "same": what does not divide evenly is put behind the input by a pad of its own
// (Convolution.cpp, convolution_same).
void convolution_mode_body(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const size_t dims = size_t(weight.dim() - 2);
  const std::string& mode = c["padding"].string();
  for (const Name& list : {Name("stride"), Name("dilation")})
    if (const Sizes& each = c.ints(list); each.size() != 1 && each.size() != dims)
      c.error(fmt::format("expects 1 or {} numbers of {}, got {}", dims, list.text, each.size()));
  Sizes padding(dims, 0), extra(2 * dims, 0);
  if (mode == "same") {
    bool even = true;
    for (size_t d = 0; d < dims; ++d) {
      const Sizes &strides = c.ints("stride"), &dilations = c.ints("dilation");
      const int64_t stride = strides[strides.size() == 1 ? 0 : d];
      if (stride != 1) c.error(fmt::format("padding 'same' needs a stride of 1, got {}", stride));
      const int64_t total =
          multiply(dilations[dilations.size() == 1 ? 0 : d], weight.size(int64_t(d) + 2) - 1);
      padding[d] = total / 2;
      extra[2 * (dims - 1 - d) + 1] = total - 2 * padding[d];
      even &= total % 2 == 0;
    }
    if (!even) {
      const Tensor padded = call<"constant_pad_nd">(c.session, input, extra, 0);
      return c.result(call<"convolution">(c.session, padded, weight, c["bias"], c["stride"], padding,
                                          c["dilation"], false, Sizes(dims, 0), c["groups"]));
    }
  } else if (mode != "valid") {
    c.error(fmt::format("padding must be a number, 'same' or 'valid'; got '{}'", mode));
  }
  c.result(call<"convolution">(c.session, input, weight, c["bias"], c["stride"], padding, c["dilation"],
                               false, Sizes(dims, 0), c["groups"]));
}

constexpr Op wrapper(std::string_view schema, std::string_view summary, void (*body)(Call&),
                     std::string_view example) {
  return composite_of(schema, summary, body, {example},
                      {.autocast = Autocast::lower_precision, .product = true});
}

constexpr Op padded_wrapper(std::string_view schema, void (*body)(Call&), std::string_view example) {
  // The convolution that it calls is cast.
  return composite_of(schema, "weight ⋆ input + bias, padded by a rule", body, {example},
                      {.takes = "weight.dim >= 3, stride.length > 0, dilation.length > 0", .product = true});
}

constexpr std::string_view plain = "weight ⋆ input + bias", transposed = "weightᵀ ⋆ input + bias";
constexpr Op kWrappers[] = {
    wrapper("conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "
            "SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
            plain, conv_body<1>, "f32[2,3,8] f32[4,3,3] f32[4]"),
    wrapper("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "
            "SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
            plain, conv_body<2>, "f32[2,3,6,6] f32[4,3,3,3] f32[4] 2 1"),
    wrapper("conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, "
            "SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
            plain, conv_body<3>, "f32[1,2,4,4,4] f32[3,2,2,2,2]"),
    wrapper("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] "
            "padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor",
            transposed, conv_transpose_body<1>, "f32[2,3,8] f32[3,4,3] f32[4] 2"),
    wrapper(
        "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, "
        "SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor",
        transposed, conv_transpose_body<2>, "f32[2,3,4,4] f32[3,4,3,3] f32[4] 2 1 1"),
    wrapper(
        "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, "
        "SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor",
        transposed, conv_transpose_body<3>, "f32[1,2,3,3,3] f32[2,3,2,2,2]"),
    padded_wrapper("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str "
                   "padding=\"valid\", SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
                   conv_padding_body<1>, "f32[2,3,8] f32[4,3,3] f32[4] 1 \"same\""),
    padded_wrapper("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str "
                   "padding=\"valid\", SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
                   conv_padding_body<2>, "f32[2,3,6,6] f32[4,3,3,3] None 1 \"same\""),
    padded_wrapper("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str "
                   "padding=\"valid\", SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
                   conv_padding_body<3>, "f32[1,2,4,4,4] f32[3,2,3,3,3] None 1 \"same\""),
    padded_wrapper("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str "
                   "padding, SymInt[] dilation, SymInt groups) -> Tensor",
                   convolution_mode_body, "f32[2,3,6,6] f32[4,3,3,3] None (1) \"same\" (1) 1")};

// --- second derivatives (aten/src/ATen/native/Convolution.cpp, _convolution_double_backward)

struct Geometries {
  Value stride, padding, dilation;
  bool transposed;
  Value output_padding;
  Value groups;
};

Geometries geometries(Backward& b) {
  return {b["stride"],         b["padding"], b["dilation"], b.boolean("transposed"),
          b["output_padding"], b["groups"]};
}

Tensor convolve(Backward& b, const Tensor& input, const Tensor& weight, const Geometries& g) {
  return call<"convolution">(b.session, input, weight, Value(), g.stride, g.padding, g.dilation, g.transposed,
                             g.output_padding, g.groups);
}

// The GPU's convolutions want their weights row-major.
Tensor as_weight(const Tensor& tensor) { return tensor.is_cuda() ? contiguous(tensor) : tensor; }

Tensor of_output_gradient(Backward& b) {
  const Geometries g = geometries(b);
  Tensor total;
  if (b.grad(0).defined()) total = convolve(b, b.grad(0), as_weight(b("weight")), g);
  if (b.grad(1).defined()) {
    const Tensor part = convolve(b, b("input"), as_weight(b.grad(1)), g);
    total = total.defined() ? total + part : part;
  }
  if (b.grad(2).defined()) {
    Sizes sizes(b("grad_output").sizes().size(), 1);
    sizes[1] = b.grad(2).numel();
    const Tensor bias = expand(view(b.grad(2), sizes), b("grad_output").sizes());
    total = total.defined() ? total + bias : bias;
  }
  return total.defined() ? total : zeros_like(b("grad_output"));
}

Tensor of_weight(Backward& b) {
  if (!b.grad(0).defined()) return zeros_like(b("weight"));
  Geometries g = geometries(b);
  std::swap(g.stride, g.dilation);
  const bool transposed = std::exchange(g.transposed, false);
  const int64_t groups = b.integer("groups");
  g.groups = Value(1);
  const Tensor outer = transpose(b("grad_output"), 0, 1), inner = transpose(b.grad(0), 0, 1);
  auto product = [&](const Tensor& in, const Tensor& out) {
    return transposed ? convolve(b, out, as_weight(in), g) : convolve(b, in, as_weight(out), g);
  };
  Tensor result;
  if (groups == 1) {
    result = product(inner, outer);
  } else {
    Value::Tensors parts;
    const int64_t in = inner.size(0) / groups, out = outer.size(0) / groups;
    for (int64_t i = 0; i < groups; ++i)
      parts.push_back(product(narrow(inner, 0, i * in, in), narrow(outer, 0, i * out, out)));
    result = call<"cat">(b.session, std::move(parts), 1);
  }
  result = transpose(result, 0, 1);
  const Sizes& sizes = b("weight").sizes();
  for (int64_t d = 2; d < int64_t(sizes.size()); ++d)
    if (result.size(d) > sizes[size_t(d)]) result = narrow(result, d, 0, sizes[size_t(d)]);
  return result;
}

// What the input has beyond the sizes that follow from the output's.
Sizes missing_padding(Backward& b) {
  const Sizes &weight = b("weight").sizes(), &input = b("input").sizes(), &output = b("grad_output").sizes();
  const size_t dims = input.size() - 2;
  auto at = [](const Sizes& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; };
  Sizes padding(dims, 0);
  for (size_t i = 0; i < dims; ++i) {
    const int64_t expected = (weight[i + 2] - 1) * at(b.ints("dilation"), i) - 2 * at(b.ints("padding"), i) +
                             at(b.ints("stride"), i) * (output[i + 2] - 1) + 1;
    padding[i] = input[i + 2] - expected;
  }
  return padding;
}

Tensor of_input(Backward& b) {
  if (!b.grad(1).defined()) return zeros_like(b("input"));
  Geometries g = geometries(b);
  g.transposed = !g.transposed;
  if (g.transposed) g.output_padding = Value(missing_padding(b));
  return convolve(b, b("grad_output"), as_weight(b.grad(1)), g);
}

Gradients convolution_rows(Backward& b) {
  Gradients gradients;
  gradients.push_back(of_output_gradient(b));
  const Tensor weight = of_weight(b);
  gradients.push_back(of_input(b));
  gradients.push_back(weight);
  return gradients;
}

constexpr Derivatives convolution_twice() {
  return {{{"grad_output", "input", "weight"}, {"grad_output", "input", "weight"}, convolution_rows}};
}

constexpr Op kConvolution[] = {
    {.schema = "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
               "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
     .summary = "weight ⋆ input + bias",
     .meta = convolution_meta,
     .host_code = {{DeviceType::cuda, convolution_cuda}},
     .derivatives = {{{"input", "weight", "bias"}, {"input", "weight"}, convolution_gradients}},
     .flops = convolution_flops,
     .examples = {"f32[2,3,6,6] f32[4,3,3,3] f32[4] (2) (1) (1) False (0) 1",
                  "f32[2,4,6] f32[4,2,3] None (1) (0) (1) False (0) 2",
                  "f32[2,3,4,4] f32[3,2,3,3] f32[2] (2) (1) (1) True (1) 1"},
     .facts = {.autocast = Autocast::lower_precision, .product = true, .kernel = Kernel::cudnn}},
    {.schema = "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
               "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
               "output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of a convolution",
     .meta = convolution_backward_meta,
     .host_code = {{DeviceType::cuda, convolution_backward_cuda}},
     .derivatives = convolution_twice(),
     .flops = convolution_backward_flops,
     .examples = {"f32[2,4,3,3] f32[2,3,6,6] f32[4,3,3,3] (4) (2) (1) (1) False (0) 1 (True True True)"},
     .facts = {.kernel = Kernel::cudnn}}};

}  // namespace

Tables convolution_operators() {
  static constexpr Records tables[] = {kWrappers, kConvolution};
  return tables;
}

}  // namespace metaprof
