// Fused cells on the GPU (aten/src/ATen/native/cuda/RNN.cu) and oneDNN's layer on the CPU, PyTorch 2.11.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/recurrent/family.h"
#include "meta/ops/recurrent/takes.h"
#include "meta/ops/rules/estimated.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

// hy, cy, and the gates after their activations, which backward needs; those come first in memory.
void lstm_meta(Call& c) {
  const Tensor &gates = c.tensor("input_gates"), &cx = c.tensor("cx");
  c.output_like(cx);
  c.output_like(cx);
  c.output_like(gates);
}

void lstm_kernel(Call& c) {
  c.allocate(2);
  c.allocate_all();
}

void lstm_backward_meta(Call& c) {
  const Tensor &gates = c.tensor("workspace"), &cx = c.tensor("cx");
  c.output(gates.sizes(), gates.dtype());
  c.no_output();
  c.output(cx.sizes(), cx.dtype());
  c.no_output();
  c.no_output();
}

// Both gates have one gradient, both biases one sum of it.
void lstm_backward_kernel(Call& c) {
  c.allocate(0);
  c.allocate(2);
  c.results[1] = c.results[0];
  if (!c.boolean("has_bias")) return;
  c.results[3] = Value(sum(c.result_tensor(), Sizes{0}, false));
  c.results[4] = c.results[3];
}

Gradients lstm_gradients(Backward& b) {
  Results all = call_all<"_thnn_fused_lstm_cell_backward">(b.session, b.grad(0), b.grad(1), b("cx"),
                                                           b("result1"), b("result2"), b.given("input_bias"));
  return {all[0], all[1], all[2], all[3], all[4]};
}

void gru_meta(Call& c) {
  const Tensor& hx = c.tensor("hx");
  c.output_like(hx);
  c.output(Sizes{hx.size(0), hx.size(1) * 5}, hx.dtype());
}

void gru_kernel(Call& c) {
  c.allocate(1);
  c.allocate(0);
}

void gru_backward_meta(Call& c) {
  const Tensor& workspace = c.tensor("workspace");
  const int64_t batch = workspace.size(0), hidden = workspace.size(1) / 5;
  c.output(Sizes{batch, hidden * 3}, workspace.dtype());
  c.output(Sizes{batch, hidden * 3}, workspace.dtype());
  c.output(c.tensor("grad_hy").sizes(), workspace.dtype());
  c.no_output();
  c.no_output();
}

void gru_backward_kernel(Call& c) {
  c.allocate_all();
  if (!c.boolean("has_bias")) return;
  for (size_t i : {0, 1}) c.results[3 + i] = Value(sum(c.results[i].tensor(), Sizes{0}, false));
}

Gradients gru_gradients(Backward& b) {
  Results all =
      call_all<"_thnn_fused_gru_cell_backward">(b.session, b.grad(), b("result1"), b.given("input_bias"));
  return {all[0], all[1], all[2], all[3], all[4]};
}

constexpr Op kFusedCells[] = {
    {.schema = "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? "
               "input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)",
     .summary = "a step of long short-term memory from its gates",
     .meta = lstm_meta,
     .host_code = {{DeviceType::cuda, lstm_kernel}},
     .derivatives = {{{"input_gates", "hidden_gates", "cx", "input_bias", "hidden_bias"},
                      {"input_gates", "hidden_gates", "cx", "input_bias", "hidden_bias", "result1",
                       "result2"},
                      lstm_gradients}},
     .flops = elementwise_flops<16>,
     .examples = {"f32[2,16] f32[2,16] f32[2,4] f32[16] f32[16]"},
     .facts = {.takes = "input_gates.dim == 2, cx.dim == 2",
               .autocast = Autocast::lower_precision,
               .no_gradient_for = {"result2"}}},
    {.schema = "_thnn_fused_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, "
               "Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     .summary = "gradients of gates, cell and biases",
     .meta = lstm_backward_meta,
     .host_code = {{DeviceType::cuda, lstm_backward_kernel}, {DeviceType::cpu, lstm_backward_kernel}},
     .derivatives = not_differentiable,
     .flops = elementwise_flops<5>,
     .examples = {"f32[2,4] f32[2,4] f32[2,4] f32[2,4] f32[2,16] True"},
     .facts = {.takes = "cx.dim == 2, workspace.dim == 2"}},
    {.schema = "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? "
               "input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor)",
     .summary = "a step of gated recurrent units from its gates",
     .meta = gru_meta,
     .host_code = {{DeviceType::cuda, gru_kernel}},
     .derivatives = {{{"input_gates", "hidden_gates", "hx", "input_bias", "hidden_bias"},
                      {"input_gates", "hidden_gates", "hx", "input_bias", "hidden_bias", "result1"},
                      gru_gradients}},
     .flops = elementwise_flops<16>,
     .examples = {"f32[2,12] f32[2,12] f32[2,4] f32[12] f32[12]"},
     .facts = {.takes = "input_gates.dim == 2, hx.dim == 2",
               .autocast = Autocast::lower_precision,
               .no_gradient_for = {"result1"}}},
    {.schema = "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) -> (Tensor, "
               "Tensor, Tensor, Tensor, Tensor)",
     .summary = "gradients of gates, state and biases",
     .meta = gru_backward_meta,
     .host_code = {{DeviceType::cuda, gru_backward_kernel}, {DeviceType::cpu, gru_backward_kernel}},
     .derivatives = not_differentiable,
     .flops = elementwise_flops<5>,
     .examples = {"f32[2,4] f32[2,20] True"},
     .facts = {.takes = "grad_hy.dim == 2, workspace.dim == 2"}}};

// --- oneDNN

// The workspace holds gates and states of every step for backward; how large is known to oneDNN only. This is
// an estimate of the same kind as for cuDNN: gates, state and cell per step.
int64_t layer_workspace(const Call& c) {
  const Tensor& input = c.tensor("input");
  return multiply(multiply(input.size(0), input.size(1)), c.integer("hidden_size") * 6 * 4);
}

void layer_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  const Sizes state = c.tensor("hx_").sizes();
  c.output(Sizes{input.size(0), input.size(1), c.integer("hidden_size")}, input.dtype());
  c.output(state, input.dtype());
  c.output(state, input.dtype());
  c.output(Sizes{c.boolean("train") ? layer_workspace(c) : 0}, DType::u8);
}

void layer_host(Call& c) {
  c.allocate_all();
  estimated(c.session, c.result_tensor(3)->storage);
}

Gradients layer_gradients(Backward& b) {
  Results all = call_all<"mkldnn_rnn_layer_backward">(
      b.session, b("input"), b("weight0"), b("weight1"), b("weight2"), b("weight3"), b("hx_"), b("cx_"),
      b("result0"), b("result1"), b("result2"), b.grad(0), b.grad(1), b.grad(2), b["reverse"], b["mode"],
      b["hidden_size"], b["num_layers"], b["has_biases"], b["train"], b["bidirectional"], b["batch_sizes"],
      b["batch_first"], b("result3"));
  Gradients out;
  for (Value& value : all.list()) out.push_back(value.take_tensor());
  return out;
}

void layer_backward_meta(Call& c) {
  for (Name name : {Name("input"), Name("weight1"), Name("weight2"), Name("weight3"), Name("weight4"),
                    Name("hx_"), Name("cx_tmp")})
    c.output(c.tensor(name).sizes(), c.tensor(name).dtype());
}

constexpr Op kRecurrentCell[] = {
    {.schema = "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor "
               "weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, "
               "int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> "
               "(Tensor, Tensor, Tensor, Tensor)",
     .summary = "a layer of long short-term memory by oneDNN",
     .meta = layer_meta,
     .host_code = {{DeviceType::cpu, layer_host}},
     .derivatives = {{{"input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"},
                      {"input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_", "result0",
                       "result1", "result2", "result3"},
                      layer_gradients}},
     .flops = [](const Call& c) -> FlopCount {
       const Tensor& input = c.tensor("input");
       return {.own = multiply(2 * multiply(input.size(0), input.size(1)),
                               c.tensor("weight0").numel() + c.tensor("weight1").numel())};
     },
     .examples = {"f32[5,2,3] f32[16,3] f32[16,4] f32[16] f32[16] f32[2,4] f32[2,4] False () 2 4 1 True "
                  "False False True"},
     .facts = {.takes = kTakenByOneLayer, .no_gradient_for = {"result3"}}},
    {.schema = "mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, "
               "Tensor weight4, Tensor hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? "
               "grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode, int hidden_size, int "
               "num_layers, bool has_biases, bool train, bool bidirectional, int[] batch_sizes, bool "
               "batch_first, Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
     .summary = "gradients of input, weights and states",
     .meta = layer_backward_meta,
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount {
       const Tensor& input = c.tensor("input");
       return {.own = multiply(4 * multiply(input.size(0), input.size(1)),
                               c.tensor("weight1").numel() + c.tensor("weight2").numel())};
     },
     .examples = {"f32[5,2,3] f32[16,3] f32[16,4] f32[16] f32[16] f32[2,4] f32[2,4] f32[5,2,4] f32[2,4] "
                  "f32[2,4] f32[5,2,4] None None False 2 4 1 True True False () False u8[240]"},
     .facts = {.takes = kTakenByOneLayerBackward}}};

}  // namespace

Tables recurrent_cell_operators() {
  static constexpr Records tables[] = {kFusedCells, kRecurrentCell};
  return tables;
}

}  // namespace metaprof
