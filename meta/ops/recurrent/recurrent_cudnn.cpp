// cuDNN's recurrent networks (aten/src/ATen/native/cudnn/RNN.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/ops/recurrent/family.h"
#include "meta/ops/recurrent/recurrent.h"
#include "meta/ops/recurrent/recurrent_space.h"
#include "meta/ops/recurrent/takes.h"
#include "meta/ops/rules/estimated.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"

namespace metaprof {

FlatWeights flat_weights(const RecurrentShape& shape) {
  FlatWeights flat;
  const int64_t rows = shape.gates() * shape.hidden, count = shape.layers * shape.directions();
  for (int64_t i = 0; i < count; ++i) {
    const bool first = i < shape.directions();
    FlatWeights::Layer layer;
    layer.input_matrix = flat.elements;
    flat.elements += rows * (first ? shape.input : shape.output() * shape.directions());
    layer.hidden_matrix = flat.elements;
    flat.elements += rows * shape.output();
    layer.projection = flat.elements;
    flat.elements += shape.projected * shape.hidden;
    flat.layers.push_back(layer);
  }
  for (FlatWeights::Layer& layer : flat.layers) {
    layer.input_bias = flat.elements;
    layer.hidden_bias = flat.elements + rows;
    flat.elements += 2 * rows;
  }
  return flat;
}

void flatten_recurrent_weights(Session& session, RecurrentMode mode, std::span<const Tensor> weights,
                               bool biases, int64_t layers, bool bidirectional) {
  const int64_t per_layer = int64_t(weights.size()) / (layers * (bidirectional ? 2 : 1));
  const bool projected = per_layer == (biases ? 5 : 3);
  const int64_t gates = RecurrentShape{mode}.gates(), hidden = weights[0].size(0) / gates;
  call<"_cudnn_rnn_flatten_weight">(
      session, Value::Tensors(weights.begin(), weights.end()), per_layer, weights[0].size(1), int64_t(mode),
      hidden, projected ? weights[size_t(per_layer) - 1].size(0) : 0, layers, false, bidirectional);
}

namespace {

RecurrentShape shape_of(const Call& c, int64_t input) {
  RecurrentShape shape{static_cast<RecurrentMode>(c.integer("mode"))};
  shape.input = input;
  shape.hidden = c.integer("hidden_size");
  shape.projected = c.integer("proj_size");
  shape.layers = c.integer("num_layers");
  shape.bidirectional = c.boolean("bidirectional");
  return shape;
}

// Element offset in the flat buffer of each tensor in a list of weights.
std::vector<int64_t> offsets_in(const Call& c, const FlatWeights& flat, const Value::Tensors& weights) {
  const int64_t per_layer = c.integer("weight_stride0");
  std::vector<int64_t> offsets;
  const bool biases = per_layer >= 4, projection = per_layer == 3 || per_layer == 5;
  for (const FlatWeights::Layer& layer : flat.layers) {
    offsets.push_back(layer.input_matrix);
    offsets.push_back(layer.hidden_matrix);
    if (biases) offsets.push_back(layer.input_bias);
    if (biases) offsets.push_back(layer.hidden_bias);
    if (projection) offsets.push_back(layer.projection);
  }
  if (weights.size() > offsets.size())
    c.error(
        fmt::format("{} weights do not fit {} layers and directions", weights.size(), flat.layers.size()));
  return offsets;
}

/// Steps × batch of an input [steps, batch, size], or [rows, size] of packed sequences.
struct Rows {
  int64_t steps = 0, batch = 0, all = 0;
  bool packed = false;

  /// What cuDNN's temporary space follows from: the longest sequence and the batch, of packed ones, too (documentation of
  /// cudnnGetRNNTempSpaceSizes: "maxSeqLength, batchSize retrieved from xDesc").
  int64_t padded() const { return steps * batch; }
};

Rows rows_of(const Call& c) {
  const Tensor& input = c.tensor("input");
  const Sizes& batches = c.ints("batch_sizes");
  if (!batches.empty()) return {int64_t(batches.size()), batches[0], input.size(0), true};
  const bool batch_first = c.boolean("batch_first");
  const int64_t steps = input.size(batch_first ? 1 : 0), batch = input.size(batch_first ? 0 : 1);
  return {steps, batch, steps * batch, false};
}

RecurrentSpace space_of(const Call& c) {
  const Tensor& input = c.tensor("input");
  const bool drops_out = c.boolean("train") && c.real("dropout") > 0;
  return recurrent_space(c.session, shape_of(c, input.size(-1)), rows_of(c).padded(), input.dtype(),
                         drops_out);
}

// Made by step, seen by batch if that is how the input comes.
void output_by_step(Call& c, const Rows& rows, int64_t width, DType dtype) {
  if (rows.packed) {
    c.output(Sizes{rows.all, width}, dtype);
  } else if (c.boolean("batch_first")) {
    c.output(Sizes{rows.batch, rows.steps, width}, Sizes{width, rows.batch * width, 1}, dtype);
  } else {
    c.output(Sizes{rows.steps, rows.batch, width}, dtype);
  }
}

void forward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &hx = c.tensor("hx"), &cx = c.tensor("cx");
  const RecurrentShape shape = shape_of(c, input.size(-1));
  const Rows rows = rows_of(c);
  output_by_step(c, rows, shape.output() * shape.directions(), input.dtype());
  c.output(hx.sizes(), hx.dtype());
  if (cx.defined()) {
    c.output(cx.sizes(), cx.dtype());
  } else {
    c.output(Sizes{0}, hx.dtype());
  }
  c.output(Sizes{c.boolean("train") ? space_of(c).reserve : 0}, DType::u8);
  if (c.given("weight_buf")) {
    c.result(c.tensor("weight_buf"));
  } else {
    c.output(Sizes{flat_weights(shape).elements}, input.dtype());
  }
}

// The input by step and row-major: a copy if it is not.
Tensor by_step(Call& c, const Tensor& tensor) {
  const bool transposed = c.boolean("batch_first") && c.ints("batch_sizes").empty();
  return c.contiguous(transposed ? transpose(tensor, 0, 1) : tensor);
}

void forward_cuda(Call& c) {
  const Tensor& input = c.tensor("input");
  const Tensor x = by_step(c, input);
  for (size_t i : {0, 1, 2, 4}) c.allocate(i);
  const int64_t bytes = space_of(c).workspace;
  const Ref<Storage> workspace = estimated(c.session, c.temporary_bytes(bytes, Category::workspace));
  c.allocate(3);
  estimated(c.session, c.result_tensor(3)->storage);
}

FlopCount forward_flops(const Call& c) {
  const RecurrentShape shape = shape_of(c, c.tensor("input").size(-1));
  const int64_t matrices = flat_weights(shape).layers[0].input_bias;
  return {.own = 2 * matrices * rows_of(c).all};
}

void backward_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  const RecurrentShape shape = shape_of(c, input.size(-1));
  output_by_step(c, rows_of(c), input.size(-1), input.dtype());
  c.output(c.tensor("hx").sizes(), input.dtype());
  if (c.tensor("cx").defined()) {
    c.output(c.tensor("cx").sizes(), input.dtype());
  } else {
    c.no_output();
  }
  const FlatWeights flat = flat_weights(shape);
  const Value::Tensors& weights = c.tensors("weight");
  const std::vector<int64_t> offsets = offsets_in(c, flat, weights);
  std::vector<Tensor> gradients;
  if (c["output_mask"].booleans()[3]) {
    for (size_t i = 0; i < weights.size(); ++i) {
      c.output(weights[i].sizes(), weights[i].dtype());
      gradients.push_back(c.results.back().take_tensor());
      c.results.pop_back();
      if (c.integer("weight_stride0") >= 4) gradients.back()->offset = offsets[i];
    }
  }
  c.view_list(std::move(gradients));
}

// zeros_like with LEGACY_CONTIGUOUS_MEMORY_FORMAT: an output that is batch first is copied by step, zeros too.
Tensor contiguous_zeros_like(const Tensor& a) {
  return call<"zeros_like">(session_of(a), a, Value(), Value(), Value(), Value(), MemoryFormat::contiguous);
}

// First the gradients of input and states, then those of the weights: one zeroed buffer that they look into.
// Without biases they are copied out of it.
void backward_cuda(Call& c) {
  if (!c.boolean("train")) c.error("cuDNN's backward runs in training mode only");
  const Tensor& input = c.tensor("input");
  const RecurrentShape shape = shape_of(c, input.size(-1));
  const int64_t workspace = space_of(c).workspace;
  const Tensor grad_output =
      c.given("grad_output") ? c.tensor("grad_output") : contiguous_zeros_like(c.tensor("output"));
  const Tensor grad_hy = c.given("grad_hy") ? c.tensor("grad_hy") : contiguous_zeros_like(c.tensor("hx"));
  const Tensor grad_cy =
      c.given("grad_cy") || !c.given("cx") ? c.tensor("grad_cy") : contiguous_zeros_like(c.tensor("cx"));
  {
    const Tensor x = by_step(c, input), dy = by_step(c, grad_output);
    c.allocate(0);
    const Tensor dhy = c.contiguous(grad_hy), dcy = grad_cy.defined() ? c.contiguous(grad_cy) : grad_cy;
    c.allocate(1);
    c.allocate(2);
    const Ref<Storage> first = estimated(c.session, c.temporary_bytes(workspace, Category::workspace));
  }
  const Value::Tensors& gradients = c.results[3].tensors();
  if (gradients.empty()) return;
  const Tensor x = by_step(c, input);
  const Tensor flat =
      call<"zeros">(c.session, Sizes{flat_weights(shape).elements}, input.dtype(), Value(), input.device());
  const Ref<Storage> second = estimated(c.session, c.temporary_bytes(workspace, Category::workspace));
  if (c.integer("weight_stride0") < 4) return c.allocate_all();
  for (const Tensor& gradient : gradients) gradient->storage = flat->storage;
}

Gradients gradients(Backward& b) {
  Value::Booleans mask{b.wants("input"), b.wants("hx"), b.given("cx") && b.wants("cx"), false};
  const size_t weights = b.list("weight").size();
  for (size_t i = 0; i < weights; ++i) mask[3] |= b.wants("weight", i);
  Results all = call_all<"_cudnn_rnn_backward">(
      b.session, b("input"), Value::Tensors(b.list("weight")), b["weight_stride0"], b("result4"), b("hx"),
      b("cx"), b("result0"), b.grad(0), b.grad(1), b.grad(2), b["mode"], b["hidden_size"], b["proj_size"],
      b["num_layers"], b["batch_first"], b["dropout"], b["train"], b["bidirectional"], b["batch_sizes"],
      b("dropout_state"), b("result3"), mask);
  Gradients out{all[0], all[1], all[2]};
  if (mask[3]) {
    for (const Tensor& gradient : all.value(3).tensors()) out.push_back(gradient);
  }
  return out;
}

// Under autocast the weights are cast into a flat buffer, copy by copy, so that gradients find back; the rest
// is cast from right to left. All of it to fp16, whatever autocast's own type
// (aten/src/ATen/cudnn/AutocastRNN.cpp names kHalf; recorded: lstm-lm.amp-bf16, whose head casts its input
// once more).
void cast_and_flatten(Call& c) {
  Session& s = c.session;
  constexpr DType to = DType::f16;
  auto cast = [&](Name name) {
    Value& value = c.arguments[c.index_of(name)];
    if (value.is_tensor()) value = Value(cached_cast(s, value.tensor(), to));
  };
  const Value::Tensors& weights = c.tensors("weight");
  if (!weights.empty() && weights[0].dtype() != to && is_floating(weights[0].dtype())) {
    const FlatWeights flat = flat_weights(shape_of(c, c.tensor("input").size(-1)));
    const std::vector<int64_t> offsets = offsets_in(c, flat, weights);
    const Tensor buffer = call<"zeros">(s, Sizes{flat.elements}, to, Value(), c.tensor("input").device());
    Value::Tensors copies;
    for (size_t i = 0; i < weights.size(); ++i) {
      const int64_t count = weights[i].numel();
      const Tensor copy = alias(buffer, Sizes{count, 1}, Sizes{1, 1}, offsets[i]);
      copies.push_back(copy_(copy, view(weights[i], Sizes{count, 1})));
    }
    c.arguments[c.index_of("weight")] = Value(std::move(copies));
    c.arguments[c.index_of("weight_buf")] = Value(buffer);
  }
  cast("cx");
  cast("hx");
  cast("input");
  c.next();
}

void flatten_meta(Call& c) {
  RecurrentShape shape = shape_of(c, c.integer("input_size"));
  c.output(Sizes{flat_weights(shape).elements}, c.tensors("weight_arr")[0].dtype());
}

// Each weight is copied into the buffer, then looks into it: its own memory is freed.
void flatten_kernel(Call& c) {
  const Value::Tensors& weights = c.tensors("weight_arr");
  c.allocate(0);
  const Tensor& buffer = c.result_tensor();
  const std::vector<int64_t> offsets =
      offsets_in(c, flat_weights(shape_of(c, c.integer("input_size"))), weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i]->storage = buffer->storage;
    weights[i]->offset = offsets[i];
  }
}

constexpr Op kCudnnRecurrent[] = {
    {.schema = "_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, "
               "Tensor? cx, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool "
               "batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, Tensor? "
               "dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     .summary = "all steps of all layers of a recurrent network",
     .meta = forward_meta,
     .host_code = {{DeviceType::cuda, forward_cuda}},
     .derivatives = {{{"input", "hx", "cx", "weight"},
                      {"input", "weight", "hx", "cx", "dropout_state", "result0", "result3", "result4"},
                      gradients}},
     .flops = forward_flops,
     .examples = {"f32[5,2,3] (f32[16,3] f32[16,4] f32[16] f32[16]) 4 None f32[1,2,4] f32[1,2,4] 2 4 0 1 "
                  "False 0.0 True False () None"},
     .facts = {.takes = kTakenByLayers,
               .random = true,
               .kernel = Kernel::cudnn,
               .no_gradient_for = {"result3", "result4"},
               .cast_by = cast_and_flatten}},
    {.schema = "_cudnn_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor weight_buf, "
               "Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, "
               "int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float "
               "dropout, bool train, bool bidirectional, SymInt[] batch_sizes, Tensor? dropout_state, Tensor "
               "reserve, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor[])",
     .summary = "gradients of input, states and weights",
     .meta = backward_meta,
     .host_code = {{DeviceType::cuda, backward_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount { return {.own = 2 * forward_flops(c).own}; },
     .examples =
         {"f32[5,2,3] (f32[16,3] f32[16,4] f32[16] f32[16]) 4 f32[144] f32[1,2,4] f32[1,2,4] f32[5,2,4] "
          "f32[5,2,4] None None 2 4 0 1 False 0.0 True False () None u8[960] (True True True True)"},
     .facts = {.takes = kTakenByLayers, .kernel = Kernel::cudnn}},
    {.schema = "_cudnn_rnn_flatten_weight(Tensor[] weight_arr, int weight_stride0, SymInt input_size, int "
               "mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, bool "
               "bidirectional) -> Tensor",
     .summary = "moves weights into one buffer",
     .meta = flatten_meta,
     .host_code = {{DeviceType::cuda, flatten_kernel}},
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(f32[16,3] f32[16,4] f32[16] f32[16]) 4 3 2 4 0 1 False False"},
     .facts = {.takes = kTakenToFlatten}}};

}  // namespace

Tables cudnn_recurrent_operators() {
  static constexpr Records tables[] = {kCudnnRecurrent};
  return tables;
}

}  // namespace metaprof
