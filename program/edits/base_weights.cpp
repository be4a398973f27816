#include "program/edits/base_weights.h"

#include <fmt/format.h>

#include <memory>

#include "core/error.h"
#include "program/edits/linear_calls.h"
#include "program/edits/program_writer.h"

namespace metaprof {
namespace {

constexpr int64_t kBlock = 64, kScaleBlock = 256;    // elements that share a scale, and scales that do
constexpr int64_t kFourBits = 16, kEightBits = 256;  // numbers that there are

constexpr const char* kFunction = "bitsandbytes.autograd._functions::MatMul8bitLt";

int64_t blocks(int64_t elements, int64_t each) { return (elements + each - 1) / each; }

class BaseWeightWriter {
 public:
  BaseWeightWriter(Program& program, std::string_view word, std::optional<DType> autocast, bool rest_trains)
      : program_(program),
        eight_bits_(word == "int8"),
        nested_(word.ends_with("-double")),
        rest_trains_(rest_trains),
        autocast_(autocast),
        writer_(program) {}

  void run() {
    const std::vector<LinearModule> modules = linear_modules(program_);
    const std::string head = head_of(modules);
    size_t kept = 0;
    for (const LinearModule& module : modules) {
      if (module.calls.empty() || module.path == head || is_shared(module)) continue;
      keep(module);
      ++kept;
    }
    if (kept == 0)
      fail("--base-weights: {} has no linear modules besides its head, whose weights could be kept so",
           program_.origin);
    if (nested_) add_shared_table();
    writer_.finish();
  }

 private:
  // A weight of two modules stays as it is: an embedding looks rows of it up.
  bool is_shared(const LinearModule& module) const {
    const int tied = program_.inputs[module.weight].tied_to;
    if (tied >= 0) return true;
    for (const ProgramInput& input : program_.inputs)
      if (input.tied_to == static_cast<int>(module.weight)) return true;
    return false;
  }

  ValueId buffer(const std::string& name, Sizes sizes, DType dtype) {
    const ValueId made =
        writer_.add_state(ProgramInput::Kind::buffer, name, std::move(sizes), dtype, false, true);
    return made;
  }

  void keep(const LinearModule& module) {
    const std::string& path = module.path;
    const int64_t elements = module.in * module.out;
    ProgramInput& weight = program_.inputs[module.weight];
    TensorFacts& facts = *program_.graph.values[static_cast<size_t>(weight.value)].tensor;
    const DType before = facts.dtype;
    const ValueId weight_value = weight.value;
    facts.dtype = eight_bits_ ? DType::i8 : DType::u8;
    facts.sizes = eight_bits_ ? Sizes{module.out, module.in} : Sizes{(elements + 1) / 2, 1};
    facts.strides = contiguous_strides(facts.sizes);
    facts.requires_grad = false;
    program_.module_types[path] =
        eight_bits_ ? "bitsandbytes.nn.modules.Linear8bitLt" : "bitsandbytes.nn.modules.Linear4bit";
    std::vector<Operand> state;
    if (eight_bits_) {
      state = {operand_of(buffer(path + ".SCB", {module.out}, DType::f32))};
    } else {
      state = four_bit_state(path, elements, before);
    }
    for (const LinearCall& call : module.calls) write(call, weight_value, state);
  }

  // QuantState: scales, the table of numbers; if scales are in 8 bits, theirs and what was taken off them.
  std::vector<Operand> four_bit_state(const std::string& path, int64_t elements, DType dtype) {
    const int64_t scales = blocks(elements, kBlock);
    ValueId absmax = kNoValue;
    std::vector<Operand> nested;
    if (nested_) {
      const ValueId narrow = buffer(path + ".absmax", {scales}, DType::u8);
      absmax = buffer(path + ".nested_absmax", {blocks(scales, kScaleBlock)}, DType::f32);
      nested = {operand_of(narrow, "absmax_8bit"),
                operand_of(buffer(path + ".nested_quant_map", {kEightBits}, DType::f32), "absmax_code"),
                operand_of(buffer(path + ".nested_offset", {}, DType::f32), "absmax_offset")};
    } else {
      absmax = buffer(path + ".absmax", {scales}, DType::f32);
    }
    buffer(path + ".quant_map", {kFourBits}, DType::f32);
    std::vector<Operand> state{operand_of(absmax), operand_of(Value(dtype))};
    state.insert(state.end(), nested.begin(), nested.end());
    return state;
  }

  // In place of all nodes of the call.
  void write(const LinearCall& call, ValueId weight, const std::vector<Operand>& state) {
    std::vector<ValueId> held = writer_.take_held_by_caller(call.begin, call.end);
    for (size_t i = call.begin; i < call.end; ++i) writer_.removed[i] = true;
    std::vector<GraphNode>& made = writer_.behind[call.end - 1];
    if (eight_bits_)
      write_eight_bits(call, weight, state[0], made);
    else
      write_four_bits(call, weight, state, made, held);
    made.back().drops = std::move(held);
  }

  // Linear4bit.forward
  void write_four_bits(const LinearCall& call, ValueId weight, const std::vector<Operand>& state,
                       std::vector<GraphNode>& made, std::vector<ValueId>& held) {
    const GraphNode& last = program_.graph.nodes[call.end - 1];
    ValueId x = call.input, result = call.result;
    if (autocast_) {
      x = converted(x);
      result = converted(result);
      made.push_back(conversion(call.input, x, Value(*autocast_), last));
      made.back().dtype_named = true;
      held.push_back(x);
    }
    std::vector<Operand> operands{operand_of(x), operand_of(weight)};
    operands.insert(operands.end(), state.begin(), state.end());
    if (const std::optional<Operand> bias = bias_of(call, weight)) operands.push_back(*bias);
    made.push_back(
        call_of("bitsandbytes::MatMul4Bit", std::move(operands), result, last.modules, last.source));
    if (!autocast_) return;
    made.push_back(conversion(result, call.result, Value(DType::f32), last));
    made.back().dtype_of = call.input;
    held.insert(held.begin(), result);
  }

  // Linear8bitLt.forward. The function's context holds its input as long as the graph lives, not until its backward has
  // run: as a custom function of the program it does so here.
  void write_eight_bits(const LinearCall& call, ValueId weight, const Operand& scales,
                        std::vector<GraphNode>& made) {
    const GraphNode& last = program_.graph.nodes[call.end - 1];
    const std::optional<Operand> bias = bias_of(call, weight);
    const auto step = [&](const char* name, std::vector<Operand> operands) {
      GraphNode node;
      node.op = fmt::format("step::{}", name);
      node.operands = std::move(operands);
      node.modules = last.modules;
      node.source = last.source;
      made.push_back(std::move(node));
    };
    step("function_enter", {operand_of(Value(kFunction))});
    std::vector<Operand> operands{operand_of(call.input), operand_of(weight), scales};
    std::vector<ValueId> arguments{call.input};
    if (bias) {
      operands.push_back(*bias);
      if (rest_trains_) arguments.push_back(bias->value);
    }
    made.push_back(
        call_of("bitsandbytes::MatMul8bitLt", std::move(operands), call.result, last.modules, last.source));
    step("function_leave",
         {operand_of(Value(kFunction)), operand_of(arguments), operand_of(std::vector{call.result}),
          operand_of(std::vector<ValueId>{}), operand_of(std::vector{call.input, weight, scales.value}),
          operand_of(eight_bit_backward(arguments.size() > 1, writer_.facts(call.result)))});
  }

  // The gradient of the result, the input, the weight and its scales → gradients of the input and of the bias.
  static std::shared_ptr<const Graph> eight_bit_backward(bool of_bias, const TensorFacts& result) {
    enum : ValueId { gradient, input, weight, scales, of_input, of_the_bias };
    auto graph = std::make_shared<Graph>();
    graph->values.resize(of_the_bias + 1);
    graph->inputs = {gradient, input, weight, scales};
    graph->nodes.push_back(call_of("bitsandbytes::MatMul8bitLt_backward",
                                   {operand_of(gradient), operand_of(weight), operand_of(scales)}, of_input,
                                   -1, -1));
    graph->outputs = {operand_of(of_input)};
    if (!of_bias) return graph;
    Sizes outer;
    for (size_t d = 0; d + 1 < result.sizes.size(); ++d) outer.push_back(static_cast<int64_t>(d));
    graph->nodes.push_back(call_of("aten::sum.dim_IntList", {operand_of(gradient), operand_of(Value(outer))},
                                   of_the_bias, -1, -1));
    graph->outputs.push_back(operand_of(of_the_bias));
    return graph;
  }

  ValueId converted(ValueId x) {
    TensorFacts facts = writer_.facts(x);
    facts.dtype = *autocast_;
    return writer_.value(facts);
  }

  static GraphNode conversion(ValueId x, ValueId result, Value dtype, const GraphNode& at) {
    return call_of("aten::to.dtype", {operand_of(x), operand_of(std::move(dtype))}, result, at.modules,
                   at.source);
  }

  std::optional<Operand> bias_of(const LinearCall& call, ValueId weight) const {
    for (size_t i = call.begin; i < call.end; ++i)
      for (Operand operand : program_.graph.nodes[i].operands) {
        if (!is_bias(operand, weight)) continue;
        operand.name = "bias";
        return operand;
      }
    return std::nullopt;
  }

  bool is_bias(const Operand& operand, ValueId weight) const {
    if (operand.kind != Operand::Kind::value || operand.value == weight) return false;
    for (const ProgramInput& input : program_.inputs)
      if (input.value == operand.value) return input.kind == ProgramInput::Kind::parameter;
    return false;
  }

  // functional.py, name2qmap: the table from which each module has its copy.
  void add_shared_table() { buffer("quant_map_dynamic", {kEightBits}, DType::f32); }

  Program& program_;
  bool eight_bits_, nested_, rest_trains_;
  std::optional<DType> autocast_;
  ProgramWriter writer_;
};

}  // namespace

void keep_base_weights(Program& program, std::string_view word, std::optional<DType> autocast,
                       bool rest_trains) {
  if (program.captured)
    fail(
        "--base-weights: {} is a run that was captured: load the weights so in its source and capture it "
        "again",
        program.origin);
  BaseWeightWriter(program, word, autocast, rest_trains).run();
}

}  // namespace metaprof
