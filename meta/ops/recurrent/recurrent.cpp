// Recurrent networks as the program calls them (aten/src/ATen/native/RNN.cpp, PyTorch 2.11): cuDNN on the
// GPU, oneDNN or a loop over steps on the CPU; single cells.

#include "meta/ops/recurrent/recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/engine/backward.h"
#include "meta/ops/recurrent/family.h"
#include "meta/ops/recurrent/packed.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/library.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

/// Weights of one layer and direction.
struct CellWeights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return call<"linear">(session_of(x), x, weight, bias);
}
Tensor stack(const Value::Tensors& list) { return call<"stack">(session_of(list[0]), Value(list), 0); }
Value::Tensors unbind(const Tensor& tensor) {
  return call_all<"unbind.int">(session_of(tensor), tensor, 0).tensors();
}
// The parts of all gates.
Value::Tensors chunks(const Tensor& tensor, int count) {
  Value::Tensors parts = call_all<"unsafe_chunk">(session_of(tensor), tensor, count, 1).tensors();
  if (parts.size() != size_t(count)) fail("{} has no parts for {} gates", describe(tensor), count);
  return parts;
}
template <FixedString name>
void change(const Tensor& self) {
  call<name>(session_of(self), self);
}
void add_to(const Tensor& self, const Tensor& other) { call<"add_.Tensor">(session_of(self), self, other); }

std::vector<CellWeights> weights_by_layer(const Call& c, const Value::Tensors& all, bool biases,
                                          int64_t count) {
  const size_t per_layer = count > 0 ? all.size() / size_t(count) : 0;
  const size_t least = biases ? 4 : 2;
  if (per_layer * size_t(count) != all.size() || per_layer < least || per_layer > least + 1)
    c.error(fmt::format("{} weights do not fit {} layers and directions", all.size(), count));
  std::vector<CellWeights> layers;
  for (size_t i = 0; i < all.size(); i += per_layer) {
    CellWeights w{all[i], all[i + 1], {}, {}, {}};
    if (biases) w.input_bias = all[i + 2];
    if (biases) w.hidden_bias = all[i + 3];
    if (per_layer > least) w.projection = all[i + least];
    layers.push_back(w);
  }
  return layers;
}

// --- cuDNN

// The weights seen as one buffer, if that is how they lie; else nothing: cuDNN's call then copies them.
Tensor flat_buffer(const RecurrentShape& shape, const std::vector<CellWeights>& layers) {
  const FlatWeights flat = flat_weights(shape);
  const Tensor& first = layers[0].input;
  const int64_t elements = first->storage->bytes / element_size(first.dtype());
  if (elements < flat.elements) return {};
  auto lies_at = [&](const Tensor& t, int64_t offset) {
    return !t.defined() || (t->storage == first->storage && t->offset == offset && t.is_contiguous());
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const FlatWeights::Layer& at = flat.layers[i];
    if (!lies_at(layers[i].input, at.input_matrix) || !lies_at(layers[i].hidden, at.hidden_matrix) ||
        !lies_at(layers[i].input_bias, at.input_bias) || !lies_at(layers[i].hidden_bias, at.hidden_bias) ||
        !lies_at(layers[i].projection, at.projection))
      return {};
  }
  return alias(first, Sizes{flat.elements}, Sizes{1}, 0);
}

struct Arguments {
  RecurrentMode mode;
  Tensor input, hx, cx;
  bool biases, train, bidirectional, batch_first;
  int64_t layers;
  double dropout;
  Sizes batch_sizes;  ///< of packed sequences; else empty

  bool packed() const { return !batch_sizes.empty(); }
};

Arguments arguments_of(const Call& c, RecurrentMode mode) {
  const bool packed = c.op.schema.arguments[0].name == "data";
  Arguments a{mode,
              c.arguments[0].tensor(),
              {},
              {},
              c.boolean("has_biases"),
              c.boolean("train"),
              c.boolean("bidirectional"),
              !packed && c.boolean("batch_first"),
              c.integer("num_layers"),
              c.real("dropout"),
              {}};
  if (mode == RecurrentMode::lstm) {
    const Value::Tensors& states = c.tensors("hx");
    if (states.size() != 2) c.error(fmt::format("needs two states, got {}", states.size()));
    a.hx = states[0];
    a.cx = states[1];
  } else {
    a.hx = c.tensor("hx");
  }
  if (packed) a.batch_sizes = batch_sizes_of(c, c.tensor("batch_sizes"), a.input.size(0), a.hx.size(1));
  return a;
}

void by_cudnn(Call& c, const Arguments& a, const std::vector<CellWeights>& layers) {
  RecurrentShape shape{a.mode};
  shape.input = a.input.size(-1);
  shape.hidden = layers[0].input.size(0) / shape.gates();
  shape.projected = layers[0].projection.defined() ? layers[0].projection.size(0) : 0;
  shape.layers = a.layers;
  shape.bidirectional = a.bidirectional;
  const Tensor buffer = flat_buffer(shape, layers);
  const Tensor state = dropout_state(c, a.train && a.dropout > 0);
  const int64_t per_layer = int64_t(c.tensors("params").size() / layers.size());
  Results all = call_all<"_cudnn_rnn">(
      c.session, a.input, c["params"], per_layer, buffer, a.hx, a.cx, int64_t(a.mode), shape.hidden,
      shape.projected, a.layers, a.batch_first, a.dropout, a.train, a.bidirectional, a.batch_sizes, state);
  c.result(std::move(all.list()[0]));
  c.result(std::move(all.list()[1]));
  if (a.mode == RecurrentMode::lstm) c.result(std::move(all.list()[2]));
}

// --- cells

struct State {
  Tensor hidden, cell;
};

Tensor projected(const CellWeights& w, const Tensor& hidden) {
  return w.projection.defined() ? matmul(hidden, t(w.projection)) : hidden;
}

// `gates`: the input's part, already multiplied, or the input itself.
State lstm_cell(const Tensor& input, const State& state, const CellWeights& w, bool multiplied) {
  Session& s = session_of(input);
  if (input.is_cuda()) {
    const Tensor igates = matmul(input, t(w.input)), hgates = matmul(state.hidden, t(w.hidden));
    Results all =
        call_all<"_thnn_fused_lstm_cell">(s, igates, hgates, state.cell, w.input_bias, w.hidden_bias);
    return {projected(w, all[0]), all[1]};
  }
  const Tensor gates = linear(state.hidden, w.hidden, w.hidden_bias);
  add_to(gates, multiplied ? input : linear(input, w.input, w.input_bias));
  const Value::Tensors parts = chunks(gates, 4);
  change<"sigmoid_">(parts[0]);
  change<"sigmoid_">(parts[1]);
  change<"tanh_">(parts[2]);
  change<"sigmoid_">(parts[3]);
  const Tensor cell = parts[1] * state.cell;
  add_to(cell, parts[0] * parts[2]);
  return {projected(w, parts[3] * call<"tanh">(s, cell)), cell};
}

State gru_cell(const Tensor& input, const State& state, const CellWeights& w, bool multiplied) {
  Session& s = session_of(input);
  if (input.is_cuda()) {
    const Tensor igates = matmul(input, t(w.input)), hgates = matmul(state.hidden, t(w.hidden));
    return {call_all<"_thnn_fused_gru_cell">(s, igates, hgates, state.hidden, w.input_bias, w.hidden_bias)[0],
            {}};
  }
  const Value::Tensors in = chunks(multiplied ? input : linear(input, w.input, w.input_bias), 3);
  const Value::Tensors hidden = chunks(linear(state.hidden, w.hidden, w.hidden_bias), 3);
  for (size_t i : {0, 1}) {
    add_to(hidden[i], in[i]);
    change<"sigmoid_">(hidden[i]);
  }
  call<"mul_.Tensor">(s, hidden[2], hidden[0]);
  const Tensor fresh = in[2] + hidden[2];
  change<"tanh_">(fresh);
  const Tensor out = state.hidden - fresh;
  call<"mul_.Tensor">(s, out, hidden[1]);
  add_to(out, fresh);
  return {out, {}};
}

template <FixedString activation>
State simple_cell(const Tensor& input, const State& state, const CellWeights& w, bool multiplied) {
  const Tensor sum = linear(state.hidden, w.hidden, w.hidden_bias);
  const Tensor of_input = multiplied ? input : linear(input, w.input, w.input_bias);
  add_to(sum, of_input);
  return {call<activation>(session_of(sum), sum), {}};
}

using Cell = State (*)(const Tensor&, const State&, const CellWeights&, bool);

// --- loops over steps

struct LayerResult {
  Tensor outputs;
  State last;
};

// On the CPU the input's part of all steps is one product.
LayerResult run_layer(Cell cell, const Tensor& input, const State& first, const CellWeights& w,
                      bool reverse) {
  const bool multiplied = input.device().is_cpu();
  Value::Tensors steps = unbind(multiplied ? linear(input, w.input, w.input_bias) : input);
  if (reverse) std::reverse(steps.begin(), steps.end());
  State state = first;
  Value::Tensors outputs;
  for (const Tensor& step : steps) {
    state = cell(step, state, w, multiplied);
    outputs.push_back(state.hidden);
  }
  if (reverse) std::reverse(outputs.begin(), outputs.end());
  return {stack(outputs), state};
}

// Of the sequences from `begin` to `end` (RNN.cpp, hidden_slice: the tuple's last member first).
State part_of(const State& state, int64_t begin, int64_t end) {
  const Tensor cell = state.cell.defined() ? narrow(state.cell, 0, begin, end - begin) : Tensor();
  return {narrow(state.hidden, 0, begin, end - begin), cell};
}

State joined(const std::vector<State>& parts) {
  Value::Tensors hidden, cells;
  for (const State& part : parts) {
    hidden.push_back(part.hidden);
    if (part.cell.defined()) cells.push_back(part.cell);
  }
  const Tensor cell = cells.empty() ? Tensor() : cat(std::move(cells), 0);
  return {cat(std::move(hidden), 0), cell};
}

// Of packed sequences those that have ended drop out, the shortest first (RNN.cpp, PackedLayer). In the other direction
// they join, the longest first (ReversedPackedLayer).
LayerResult run_packed_layer(Cell cell, const Tensor& data, const State& first, const CellWeights& w,
                             const Sizes& batch_sizes, bool reverse) {
  const bool multiplied = data.device().is_cpu();
  const Tensor input = multiplied ? linear(data, w.input, w.input_bias) : data;
  Sizes sizes = batch_sizes;
  if (reverse) std::reverse(sizes.begin(), sizes.end());
  int64_t row = reverse ? data.size(0) : 0, before = sizes[0];
  State state = reverse ? part_of(first, 0, before) : first;
  std::vector<State> ended;
  Value::Tensors outputs;
  for (const int64_t size : sizes) {
    if (!reverse) {
      const Tensor step = narrow(input, 0, row, size);
      row += size;
      if (size < before) {
        ended.push_back(part_of(state, size, before));
        state = part_of(state, 0, size);
      }
      state = cell(step, state, w, multiplied);
    } else {
      if (size > before) state = joined({state, part_of(first, before, size)});
      row -= size;
      state = cell(narrow(input, 0, row, size), state, w, multiplied);
    }
    before = size;
    outputs.push_back(state.hidden);
  }
  if (reverse) {
    std::reverse(outputs.begin(), outputs.end());
    return {cat(std::move(outputs), 0), state};
  }
  ended.push_back(state);
  std::reverse(ended.begin(), ended.end());
  const Tensor all = cat(std::move(outputs), 0);
  return {all, joined(ended)};
}

// oneDNN runs one layer and direction at a time.
LayerResult run_mkldnn(const Call& c, const Arguments& a, const Tensor& input, const State& first,
                       const CellWeights& w, bool reverse) {
  const Tensor none = w.input_bias.defined() ? Tensor() : zeros_like(select(w.input, 1, 0));
  Results all = call_all<"mkldnn_rnn_layer">(
      c.session, input, w.input, w.hidden, w.input_bias.defined() ? w.input_bias : none,
      w.input_bias.defined() ? w.hidden_bias : none, first.hidden, first.cell, reverse, Sizes{},
      int64_t(a.mode), first.hidden.size(-1), a.layers, a.biases, a.bidirectional, a.batch_first, a.train);
  return {all[0], {all[1], all[2]}};
}

void by_steps(Call& c, const Arguments& a, const std::vector<CellWeights>& layers, Cell cell) {
  const bool mkldnn = a.mode == RecurrentMode::lstm && a.input.device().is_cpu() &&
                      !layers[0].projection.defined() && a.input.numel() != 0 && !a.packed();
  Tensor input = a.batch_first ? transpose(a.input, 0, 1) : a.input;
  const int directions = a.bidirectional ? 2 : 1;
  Value::Tensors hidden_states, cell_states;
  if (!mkldnn) {
    hidden_states = unbind(a.hx);
    if (a.cx.defined()) cell_states = unbind(a.cx);
  }
  Value::Tensors last_hidden, last_cell;
  for (size_t layer = 0; layer < size_t(a.layers); ++layer) {
    Value::Tensors outputs;
    for (int d = 0; d < directions; ++d) {
      const size_t i = layer * size_t(directions) + size_t(d);
      State first;
      if (mkldnn) {
        first = {select(a.hx, 0, int64_t(i)), select(a.cx, 0, int64_t(i))};
      } else {
        first = {hidden_states[i], a.cx.defined() ? cell_states[i] : Tensor()};
      }
      LayerResult result = mkldnn ? run_mkldnn(c, a, input, first, layers[i], d == 1)
                           : a.packed()
                               ? run_packed_layer(cell, input, first, layers[i], a.batch_sizes, d == 1)
                               : run_layer(cell, input, first, layers[i], d == 1);
      outputs.push_back(result.outputs);
      last_hidden.push_back(result.last.hidden);
      if (result.last.cell.defined()) last_cell.push_back(result.last.cell);
    }
    input = outputs.size() == 1 ? outputs[0] : call<"cat">(c.session, Value(outputs), -1);
    if (a.dropout > 0 && a.train && layer + 1 < size_t(a.layers))
      input = call<"dropout">(c.session, input, a.dropout, true);
  }
  const Tensor hy = stack(last_hidden);
  const Tensor cy = last_cell.empty() ? Tensor() : stack(last_cell);
  // What oneDNN made is kept for backward: it is not transposed in place (recorded: shapes/rnn on the host).
  if (a.batch_first) input = mkldnn ? transpose(input, 0, 1) : call<"transpose_">(c.session, input, 0, 1);
  c.result(input);
  c.result(hy);
  if (a.mode == RecurrentMode::lstm) c.result(cy);
}

// cuDNN takes bf16 of the wheel of 2.11 (9.19); before, of 2.10 (9.10), the framework's own cells do it (RNN.cpp,
// use_cudnn; recorded: recurrent.bf16 of tools/record/version_programs.py by 2.6 and 2.11).
bool taken_by_cudnn(const Call& c, const Tensor& input) {
  constexpr int kFirstWithBf16 = 91300;
  return input.is_cuda() && (input.dtype() != DType::bf16 || c.platform().libraries.cudnn >= kFirstWithBf16);
}

template <RecurrentMode mode, Cell cell>
void recurrent_body(Call& c) {
  const Arguments a = arguments_of(c, mode);
  const std::vector<CellWeights> layers =
      weights_by_layer(c, c.tensors("params"), a.biases, a.layers * (a.bidirectional ? 2 : 1));
  if (taken_by_cudnn(c, a.input)) return by_cudnn(c, a, layers);
  by_steps(c, a, layers, cell);
}

// --- cells that the program calls

CellWeights cell_weights(const Call& c) {
  return {c.tensor("w_ih"), c.tensor("w_hh"), c.tensor("b_ih"), c.tensor("b_hh"), {}};
}

void lstm_cell_body(Call& c) {
  const Value::Tensors& states = c.tensors("hx");
  if (states.size() != 2) c.error(fmt::format("needs two states, got {}", states.size()));
  const State out = lstm_cell(c.tensor("input"), {states[0], states[1]}, cell_weights(c), false);
  c.result(out.hidden);
  c.result(out.cell);
}

template <Cell cell>
void cell_body(Call& c) {
  c.result(cell(c.tensor("input"), {c.tensor("hx"), {}}, cell_weights(c), false).hidden);
}

// torch.nn.RNNBase._apply, for the dtypes that torch.backends.cudnn.is_acceptable takes.
template <RecurrentMode mode>
void flatten_when_placed(Session& session, const Operator& op, std::span<const Value> arguments) {
  const auto given = [&](std::string_view name) -> const Value& {
    return arguments[size_t(op.schema.find(name_hash(name)))];
  };
  if (!session.device.is_cuda() || !given("params").is_tensors()) return;
  const Value::Tensors& weights = given("params").tensors();
  const auto is_there = [](const Tensor& weight) { return weight.defined(); };
  if (weights.empty() || !std::ranges::all_of(weights, is_there) || weights[0].dtype() == DType::bf16) return;
  // Lists that do not fit are refused by the call that takes them.
  const int64_t layers = given("num_layers").integer();
  if (layers < 1 || layers > static_cast<int64_t>(weights.size())) return;
  flatten_recurrent_weights(session, mode, weights, given("has_biases").boolean(), layers,
                            given("bidirectional").boolean());
}

constexpr Op kSequences[] = {
    composite_of(
        "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        "long short-term memory over a sequence", recurrent_body<RecurrentMode::lstm, lstm_cell>,
        {"f32[5,2,3] (f32[1,2,4] f32[1,2,4]) (f32[16,3] f32[16,4] f32[16] f32[16]) True 1 0.0 True False "
         "False"},
        {.on_placement = flatten_when_placed<RecurrentMode::lstm>}),
    composite_of("gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
                 "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
                 "gated recurrent units over a sequence", recurrent_body<RecurrentMode::gru, gru_cell>,
                 {"f32[5,2,3] f32[1,2,4] (f32[12,3] f32[12,4] f32[12] f32[12]) True 1 0.0 True False False"},
                 {.on_placement = flatten_when_placed<RecurrentMode::gru>}),
    composite_of("rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
                 "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
                 "tanh units over a sequence", recurrent_body<RecurrentMode::tanh, simple_cell<"tanh">>,
                 {"f32[5,2,3] f32[1,2,4] (f32[4,3] f32[4,4] f32[4] f32[4]) True 1 0.0 True False False"},
                 {.on_placement = flatten_when_placed<RecurrentMode::tanh>}),
    composite_of("rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
                 "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
                 "relu units over a sequence", recurrent_body<RecurrentMode::relu, simple_cell<"relu">>,
                 {"f32[5,2,3] f32[1,2,4] (f32[4,3] f32[4,4] f32[4] f32[4]) True 1 0.0 True False False"},
                 {.on_placement = flatten_when_placed<RecurrentMode::relu>})};

constexpr Op kPacked[] = {
    composite_of("lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, "
                 "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
                 "long short-term memory over packed sequences",
                 recurrent_body<RecurrentMode::lstm, lstm_cell>,
                 {"f32[7,3] i64[5]@h1 (f32[1,2,4] f32[1,2,4]) (f32[16,3] f32[16,4] f32[16] f32[16]) True 1 "
                  "0.0 True False"},
                 {.on_placement = flatten_when_placed<RecurrentMode::lstm>}),
    composite_of(
        "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        "gated recurrent units over packed sequences", recurrent_body<RecurrentMode::gru, gru_cell>,
        {"f32[7,3] i64[5]@h1 f32[1,2,4] (f32[12,3] f32[12,4] f32[12] f32[12]) True 1 0.0 True False"},
        {.on_placement = flatten_when_placed<RecurrentMode::gru>}),
    composite_of(
        "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        "tanh units over packed sequences", recurrent_body<RecurrentMode::tanh, simple_cell<"tanh">>,
        {"f32[7,3] i64[5]@h1 f32[1,2,4] (f32[4,3] f32[4,4] f32[4] f32[4]) True 1 0.0 True False"},
        {.on_placement = flatten_when_placed<RecurrentMode::tanh>}),
    composite_of(
        "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        "relu units over packed sequences", recurrent_body<RecurrentMode::relu, simple_cell<"relu">>,
        {"f32[7,3] i64[5]@h1 f32[1,2,4] (f32[4,3] f32[4,4] f32[4] f32[4]) True 1 0.0 True False"},
        {.on_placement = flatten_when_placed<RecurrentMode::relu>})};

constexpr Op step_of(std::string_view schema, std::string_view summary, void (*body)(Call&),
                     std::string_view example) {
  return composite_of(schema, summary, body, {example},
                      {.autocast = Autocast::lower_precision, .product = true});
}

constexpr Op kCells[] = {step_of("lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? "
                                 "b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
                                 "one step of long short-term memory", lstm_cell_body,
                                 "f32[2,3] (f32[2,4] f32[2,4]) f32[16,3] f32[16,4] f32[16] f32[16]"),
                         step_of("gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? "
                                 "b_ih=None, Tensor? b_hh=None) -> Tensor",
                                 "one step of gated recurrent units", cell_body<gru_cell>,
                                 "f32[2,3] f32[2,4] f32[12,3] f32[12,4] f32[12] f32[12]"),
                         step_of("rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? "
                                 "b_ih=None, Tensor? b_hh=None) -> Tensor",
                                 "one step of tanh units", cell_body<simple_cell<"tanh">>,
                                 "f32[2,3] f32[2,4] f32[4,3] f32[4,4] f32[4] f32[4]"),
                         step_of("rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? "
                                 "b_ih=None, Tensor? b_hh=None) -> Tensor",
                                 "one step of relu units", cell_body<simple_cell<"relu">>,
                                 "f32[2,3] f32[2,4] f32[4,3] f32[4,4] f32[4] f32[4]")};

}  // namespace

Tables recurrent_operators() {
  static constexpr Records tables[] = {kSequences, kPacked, kCells};
  return tables;
}

}  // namespace metaprof
