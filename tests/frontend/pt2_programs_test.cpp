// What the format can hold, on small programs exported with PyTorch 2.11 (tests/data/programs/README.md).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/pt2/pt2.h"
#include "program/symbols.h"
#include "tests/frontend/archives.h"

namespace metaprof {
namespace {

Program read(const std::string& name, const Pt2Options& options = {}) {
  return read_pt2("tests/data/programs/" + name + ".pt2", options);
}

// The node of that position among those with an operator.
const GraphNode& node_of(const Graph& graph, std::string_view op, int position = 0) {
  for (const GraphNode& node : graph.nodes)
    if (node.op == op && position-- == 0) return node;
  throw std::runtime_error("no call of " + std::string(op));
}

const Operand& operand_of(const GraphNode& node, std::string_view name) {
  for (const Operand& operand : node.operands)
    if (operand.name == name) return operand;
  throw std::runtime_error("no argument " + std::string(name));
}

const Value& constant_of(const GraphNode& node, std::string_view name) {
  const Operand& operand = operand_of(node, name);
  EXPECT_EQ(operand.kind, Operand::Kind::constant) << name;
  return operand.constant;
}

const ValueFacts& facts(const Graph& graph, std::string_view name) {
  for (const ValueFacts& value : graph.values)
    if (value.name == name) return value;
  throw std::runtime_error("no value " + std::string(name));
}

Sizes sizes(const Program& program, std::string_view name) {
  return facts(program.graph, name).tensor->sizes;
}

std::vector<std::string> input_names(const Program& program, ProgramInput::Kind kind) {
  std::vector<std::string> names;
  for (const ProgramInput& input : program.inputs)
    if (input.kind == kind) names.push_back(input.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Pt2, InputsHaveTheirNamesAndKinds) {
  const Program program = read("mutation_functional");
  EXPECT_EQ(program.name, "mutation_functional");
  EXPECT_EQ(program.origin, "tests/data/programs/mutation_functional.pt2");
  EXPECT_EQ(input_names(program, ProgramInput::Kind::parameter), (Names{"fc.weight", "fc.bias"}));
  EXPECT_EQ(input_names(program, ProgramInput::Kind::buffer).size(), 2u);
  EXPECT_EQ(input_names(program, ProgramInput::Kind::user), (Names{"x", "cache"}));
  const auto persistent = std::count_if(
      program.inputs.begin(), program.inputs.end(),
      [](const ProgramInput& input) { return input.kind == ProgramInput::Kind::buffer && input.persistent; });
  EXPECT_EQ(persistent, 1) << "one buffer is persistent, one is not";
}

TEST(Pt2, MutationsStandBeforeTheUsersOutputs) {
  const Program program = read("mutation_functional");
  using enum ProgramOutput::Kind;
  std::vector<ProgramOutput::Kind> kinds;
  for (const ProgramOutput& output : program.outputs) kinds.push_back(output.kind);
  EXPECT_EQ(kinds, (std::vector{buffer_mutation, buffer_mutation, input_mutation, user, user}));
  EXPECT_EQ(program.outputs[2].name, "cache");
}

TEST(Pt2, ConstantInputsHaveTheirValues) {
  const Program program = read("nontensor_inputs");
  EXPECT_EQ(input_names(program, ProgramInput::Kind::constant),
            (Names{"n", "scale", "flag", "mode", "none"}));
  const auto value = [&](size_t i) -> const Value& { return program.inputs.at(i).constant; };
  EXPECT_EQ(value(3).integer(), 8);
  EXPECT_EQ(value(4).real(), 0.5);
  EXPECT_TRUE(value(5).boolean());
  EXPECT_EQ(value(6).string(), "relu");
  EXPECT_TRUE(value(7).is_none());
  for (size_t i = 3; i < 8; ++i) EXPECT_EQ(program.inputs[i].value, kNoValue) << "no value of the graph";
}

TEST(Pt2, NestedInputsAndOutputsAreFlat) {
  const Program program = read("nested_io");
  EXPECT_EQ(input_names(program, ProgramInput::Kind::user),
            (Names{"batch_x", "batch_meta_mask", "pair_0", "pair_1_0", "scale"}));
  ASSERT_EQ(program.outputs.size(), 5u);
  EXPECT_TRUE(program.outputs[3].operand.constant.is_none());
  EXPECT_EQ(program.outputs[4].operand.constant.integer(), 3);
  EXPECT_EQ(program.graph.values.at(static_cast<size_t>(program.loss())).name, "mean") << "the first scalar";
}

TEST(Pt2, NonFiniteNumbersAreRead) {
  const Program program = read("nonfinite");
  EXPECT_EQ(constant_of(node_of(program.graph, "aten::masked_fill.Scalar"), "value").real(), -INFINITY);
  const GraphNode& replace = node_of(program.graph, "aten::nan_to_num");
  EXPECT_EQ(constant_of(replace, "posinf").real(), INFINITY);
  EXPECT_EQ(constant_of(replace, "neginf").real(), -1e308);
  EXPECT_TRUE(std::isnan(constant_of(node_of(program.graph, "aten::full"), "fill_value").real()));
}

TEST(Pt2, NumbersOfTypesAreThoseOfTheOperators) {
  const Program program = read("nonfinite");
  const GraphNode& ones = node_of(program.graph, "aten::ones");
  EXPECT_EQ(constant_of(ones, "dtype").integer(), 11) << "bool: 12 in the file, 11 in c10";
  EXPECT_EQ(constant_of(ones, "device").device(), kModelDevice) << "meta in the file";
  const GraphNode& check = node_of(program.graph, "aten::_assert_tensor_metadata");
  EXPECT_EQ(constant_of(check, "layout").integer(), 0) << "strided: 7 in the file, 0 in c10";
  const Program joint = read("joint");
  EXPECT_EQ(constant_of(node_of(joint.graph, "aten::full_like"), "memory_format").integer(), 1)
      << "preserve: 4 in the file, 1 in c10";
}

TEST(Pt2, EveryElementTypeIsRead) {
  const Program program = read("dtypes");
  std::set<DType> seen;
  for (const ValueFacts& value : program.graph.values)
    if (value.tensor) seen.insert(value.tensor->dtype);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f64, DType::f32, DType::f8_e4m3fn, DType::f8_e5m2,
                            DType::i8, DType::u8, DType::i16, DType::i32, DType::b8, DType::c64})
    EXPECT_TRUE(seen.count(dtype)) << short_name(dtype);
  const auto has_complex = [](const GraphNode& node) {
    return std::any_of(node.operands.begin(), node.operands.end(), [](const Operand& operand) {
      return operand.constant.kind() == Value::Kind::complex &&
             operand.constant.reals() == Value::Reals{1, 2};
    });
  };
  EXPECT_TRUE(std::any_of(program.graph.nodes.begin(), program.graph.nodes.end(), has_complex)) << "1+2j";
}

TEST(Pt2, OpenSlicesEndAtTheLargestInteger) {
  const Program program = read("slices");
  EXPECT_EQ(constant_of(node_of(program.graph, "aten::slice.Tensor"), "end").integer(),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(constant_of(node_of(program.graph, "aten::slice.Tensor", 2), "start").integer(), -3);
}

TEST(Pt2, ListsOfTensorsMayHaveHoles) {
  const Program program = read("slices");
  const Operand& indices = operand_of(node_of(program.graph, "aten::index.Tensor"), "indices");
  ASSERT_EQ(indices.kind, Operand::Kind::values);
  ASSERT_EQ(indices.values.size(), 2u);
  EXPECT_EQ(indices.values[0], kNoValue);
  EXPECT_EQ(program.graph.values.at(static_cast<size_t>(indices.values[1])).name, "arange");
}

TEST(Pt2, CallsMayHaveSeveralResultsOrAList) {
  const Program program = read("multi_output");
  EXPECT_EQ(node_of(program.graph, "aten::lstm.input").targets.size(), 3u);
  EXPECT_EQ(operand_of(node_of(program.graph, "aten::lstm.input"), "params").values.size(), 8u);
  const GraphNode& split = node_of(program.graph, "aten::split_with_sizes");
  ASSERT_EQ(split.targets.size(), 1u);
  EXPECT_TRUE(split.targets[0].list);
  EXPECT_EQ(split.targets[0].values.size(), 3u);
  EXPECT_EQ(constant_of(split, "split_sizes").integers(), (Sizes{2, 4, 2}));
  const Program joint = read("joint");
  EXPECT_EQ(node_of(joint.graph, "aten::convolution_backward").targets.at(0).values, (std::vector{kNoValue}))
      << "a gradient that was not asked for";
}

TEST(Pt2, SubGraphsHaveTheirOwnValues) {
  const Program program = read("cond");
  const GraphNode& cond = node_of(program.graph, "higher_order::cond");
  ASSERT_EQ(cond.operands.size(), 4u);
  const Graph& first = *cond.operands[1].graph;
  const Graph& second = *cond.operands[2].graph;
  EXPECT_EQ(first.inputs.size(), cond.operands[3].values.size()) << "both bodies take all operands";
  EXPECT_EQ(node_of(first, "aten::linear").modules, cond.modules) << "they have no modules of their own";
  EXPECT_EQ(second.nodes.at(0).op, "aten::sin");
  EXPECT_EQ(second.outputs.at(0).value, second.nodes.at(0).targets.at(0).values.at(0));
}

TEST(Pt2, CheckpointedRegionsKeepTheirModules) {
  const Program program = read("checkpoint_strict");
  const GraphNode& region = node_of(program.graph, "higher_order::tag_activation_checkpoint");
  EXPECT_FALSE(constant_of(region, "use_reentrant").boolean());
  const GraphNode& linear = node_of(*region.operands.at(0).graph, "aten::linear");
  const auto& frames = program.module_stacks.at(static_cast<size_t>(linear.modules));
  EXPECT_EQ(frames.back().path, "a.0") << "_export_root.a.0 in the file";
  EXPECT_EQ(frames.back().type, "torch.nn.modules.linear.Linear");
}

TEST(Pt2, ModulesAndSourceLinesOfACall) {
  const Program program = read("eval_mode");
  const GraphNode& conv = node_of(program.graph, "aten::conv2d");
  const auto& modules = program.module_stacks.at(static_cast<size_t>(conv.modules));
  EXPECT_EQ(modules.front().path, "");
  EXPECT_EQ(modules.back().path, "conv");
  EXPECT_EQ(modules.back().type, "torch.nn.modules.conv.Conv2d");
  EXPECT_EQ(program.module_types.at("conv"), "torch.nn.modules.conv.Conv2d");
  const SourceLine& source = program.source_stacks.at(static_cast<size_t>(conv.source)).front();
  EXPECT_EQ(source.file, "make.py");
  EXPECT_EQ(source.function, "forward");
  EXPECT_EQ(source.code, "h = self.drop(self.act(self.bn(self.conv(x)))).mean((2, 3))");
}

TEST(Pt2, TrainingModeShowsInFlags) {
  EXPECT_FALSE(read("eval_mode").training);
  EXPECT_TRUE(read("several_programs", {.program = "train"}).training);
  EXPECT_FALSE(read("several_programs", {.program = "infer"}).training);
  EXPECT_TRUE(read("cond").training) << "no flags: taken to be training";
}

TEST(Pt2, SeveralProgramsAreChosenByName) {
  EXPECT_EQ(read("several_programs", {.program = "train"}).name, "several_programs:train");
  const std::string path = "tests/data/programs/several_programs.pt2: ";
  EXPECT_EQ(error_of([] { read("several_programs"); }),
            path + "the archive holds several programs: name one of train, infer, as " +
                path.substr(0, path.size() - 2) + ":NAME");
  EXPECT_EQ(error_of([] { read("several_programs", {.program = "test"}); }),
            path + "no program 'test' in the archive; it holds train, infer");
}

TEST(Pt2, TiesFollowFromRecordsWithBytes) {
  const Program program = read("tied_real");
  EXPECT_EQ(program.tied_names(), (std::vector<Names>{{"embed.weight", "head.weight"},
                                                      {"block.weight", "again.weight"},
                                                      {"block.bias", "again.bias"}}));
  EXPECT_TRUE(program.warnings.empty());
  for (const ProgramInput& input : program.inputs)
    if (input.name == "head.weight") {
      EXPECT_EQ(program.inputs.at(static_cast<size_t>(input.tied_to)).name, "embed.weight");
    }
}

TEST(Pt2, TiesFollowFromUseWhereThereAreNoBytes) {
  const Program program = read("tied_meta");
  EXPECT_EQ(program.tied_names(), read("tied_real").tied_names());
  ASSERT_EQ(program.warnings.size(), 3u) << "what is concluded is said";
  expect_words(
      program.warnings[0],
      "tied_meta.pt2: the parameter embed.weight is used by no call and is taken to be tied to head.weight");
}

TEST(Pt2, FrozenParametersRequireNoGradient) {
  const Program program = read("tied_meta");
  EXPECT_FALSE(facts(program.graph, "p_frozen").tensor->requires_grad);
  EXPECT_TRUE(facts(program.graph, "p_head_weight").tensor->requires_grad);
}

TEST(Pt2, ConstantTensorsAreInputs) {
  EXPECT_EQ(input_names(read("constants"), ProgramInput::Kind::constant_tensor),
            (Names{"table", "lifted_tensor_0", "lifted_tensor_1"}));
}

TEST(Pt2, TensorsAreOnTheModelsDeviceUnlessTheFileInsists) {
  const Program program = read("checkpoint_nonstrict");
  EXPECT_FALSE(facts(program.graph, "linear").tensor->device) << "meta, as the parameters";
  EXPECT_EQ(facts(program.graph, "empty").tensor->device, kHost);
  EXPECT_EQ(constant_of(node_of(program.graph, "aten::empty.memory_format"), "device").device(), kHost);
  EXPECT_FALSE(facts(read("cond").graph, "linear").tensor->device) << "all of the model was on the CPU";
}

TEST(Pt2, JointGraphsMarkLossAndGradients) {
  const Program program = read("joint");
  EXPECT_EQ(program.graph.values.at(static_cast<size_t>(program.loss())).name, "div");
  Names gradients;
  for (const ProgramOutput& output : program.outputs)
    if (output.kind == ProgramOutput::Kind::gradient) gradients.push_back(output.name);
  EXPECT_EQ(gradients, (Names{"conv.weight", "conv.bias", "bn.weight", "bn.bias", "fc.weight", "fc.bias"}));
}

TEST(Pt2, CustomOperatorsKeepTheirNames) {
  const Program program = read("custom_op");
  const auto custom = std::find_if(program.graph.nodes.begin(), program.graph.nodes.end(),
                                   [](const GraphNode& node) { return !node.op.starts_with("aten::"); });
  ASSERT_NE(custom, program.graph.nodes.end());
  EXPECT_EQ(custom->op.find(".default"), std::string::npos) << custom->op;
}

// Symbolic sizes: b = s17 = 4, s = s27 = 10, t = s94 = 7.

TEST(Pt2, SymbolicSizesHaveTheValuesOfTheExport) {
  const Program program = read("symbolic_exprs");
  EXPECT_EQ(program.symbols, (SymbolValues{{"s17", 4}, {"s27", 10}, {"s94", 7}}));
  EXPECT_EQ(sizes(program, "reshape"), (Sizes{40, 6})) << "b*s";
  EXPECT_EQ(sizes(program, "cat"), (Sizes{4, 20, 6}));
  EXPECT_EQ(sizes(program, "conv1d"), (Sizes{4, 6, (10 - 1) / 2 + 1}));
  EXPECT_EQ(sizes(program, "slice_2"), (Sizes{4, (10 + 2) / 3, 6}));
  EXPECT_EQ(facts(program.graph, "mul").number, 40) << "a number of the graph";
  const Operand& shape = operand_of(node_of(program.graph, "aten::reshape"), "shape");
  EXPECT_EQ(shape.kind, Operand::Kind::integers);
  EXPECT_EQ(shape.values.at(1), kNoValue);
  EXPECT_EQ(shape.numbers.at(1), 6);
}

TEST(Pt2, SymbolsCanBeGivenOtherValues) {
  const Program program = read("symbolic_exprs", {.symbols = {{"s27", 101}}});
  EXPECT_EQ(sizes(program, "reshape"), (Sizes{404, 6}));
  EXPECT_EQ(sizes(program, "conv1d"), (Sizes{4, 6, (101 - 1) / 2 + 1}));
  EXPECT_EQ(facts(program.graph, "conv1d").tensor->strides[0], 6 * 51) << "strides follow";
  EXPECT_EQ(facts(program.graph, "mul").number, 404);
  expect_words(error_of([] {
                 read("symbolic_exprs", {.symbols = {{"s27", 7}}});
               }),
               "s27 = 7 is outside the range of the export, 8 to 1024");
}

TEST(Pt2, SymbolsFollowFromTheSizesOfInputs) {
  Program program = read("derived_dim");
  EXPECT_EQ(sizes(program, "x"), (Sizes{8, 16})) << "2*s44 with s44 = 4";
  bind_symbols(program, symbols_for(program, "x", Sizes{20, 16}));
  EXPECT_EQ(program.symbols.at("s44"), 10);
  EXPECT_EQ(sizes(program, "cat"), (Sizes{10, 32}));
  expect_words(error_of([&] { symbols_for(program, "x", Sizes{9, 16}); }), "cannot be 9");
}

TEST(Pt2, AnIntegerInputMayBeASymbol) {
  Program program = read("symint_input");
  EXPECT_EQ(input_names(program, ProgramInput::Kind::user), (Names{"x", "n"}));
  EXPECT_EQ(facts(program.graph, "n").number, 8);
  bind_symbols(program, symbols_for_number(program, "n", 5));
  EXPECT_EQ(facts(program.graph, "n").number, 5);
  EXPECT_EQ(sizes(program, "narrow"), (Sizes{4, 5}));
  expect_words(error_of([&] { symbols_for_number(program, "x", 5); }), "no input x that is a number");
}

TEST(Pt2, SizesThatDependOnDataTakeTheirLargestValue) {
  const Program program = read("unbacked");
  EXPECT_EQ(program.symbols.at("u0"), 8);
  expect_words(program.assumed.at("u0"), "the size u0 depends on data: its largest value 8 is taken");
  const Program given = read("unbacked", {.symbols = {{"u0", 3}}});
  EXPECT_EQ(given.symbols.at("u0"), 3);
  EXPECT_TRUE(given.assumed.empty());
  expect_words(error_of([] { read("unbacked", {.symbols = {{"u0", 9}}}); }), "outside the range");
  EXPECT_TRUE(read("while_loop").assumed.empty());  // its trips are in offsets alone, which change no memory
}

TEST(Pt2, SizesThatNothingBoundsTakeTheirSmallestValue) {
  std::string text = program_text("tests/data/programs/unbacked.pt2");
  const std::string bound = R"("max_val": 8)";
  ASSERT_NE(text.find(bound), std::string::npos);
  text.replace(text.find(bound), bound.size(), R"("max_val": null)");
  const TemporaryFile file("unbounded.pt2");
  file.write_archive({{"unbounded/models/model.json", text}});
  expect_words(read_pt2(file.path()).assumed.at("u0"), "nothing bounds it, and its smallest value");
}

// Malformed programs beyond the fixtures.

// The Error of base.pt2 with a part of its text replaced.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = program_text("tests/data/fixtures/base.pt2");
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const TemporaryFile file("changed.pt2");
  file.write_archive({{"changed/models/model.json", text}});
  return error_of([&] { read_pt2(file.path()); });
}

TEST(Pt2, AParameterIsATensor) {
  expect_words(
      error_with(R"({"as_tensor": {"name": "p_fc_bias"}})", R"({"as_sym_int": {"as_name": "p_fc_bias"}})"),
      "'p_fc_bias' is a tensor here, but was defined as a number");
  const std::string path = "tests/data/programs/symint_input.pt2";
  std::string text = program_text(path);
  const std::string from = R"({"user_input": {"arg": {"as_sym_int": {"as_name": "n"}}}})";
  ASSERT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(),
               R"({"parameter": {"arg": {"name": "n"}, "parameter_name": "n"}})");
  const TemporaryFile file("number.pt2");
  file.write_archive({{"models/model.json", text}});
  expect_words(error_of([&] { read_pt2(file.path()); }), "'n' is a number in the graph, expected a tensor");
}

TEST(Pt2, MessagesNameThePlace) {
  const std::string where = "changed/models/model.json: graph_module.";
  expect_words(error_with(R"("name": "x"}}, {"as_tensor": {"name": "labels")",
                          R"("name": "x"}}, {"as_tensor": {"name": "x")"),
               where + "graph.inputs[3].as_tensor.name: the value 'x' is defined twice");
  expect_words(error_with(R"({"user_output": )", R"({"as_ghost": )"),
               where + "signature.output_specs[0]: unknown kind of output, as_ghost");
  expect_words(error_with(R"("parameter_name": "fc.weight")", R"("nothing": 0)"),
               where + "signature.input_specs[0].parameter: parameter_name is missing");
  expect_words(error_with(R"({"parameter": {"arg": {"name": "p_fc_weight"})",
                          R"({"parameter": {"arg": {"name": "p_fc_bias"})"),
               "'p_fc_bias' is not the input of the graph at this place");
  expect_words(error_with(R"("p_fc_bias": {"dtype")", R"("p_fc_weight": {"dtype")"),
               where + "graph.tensor_values.p_fc_weight: the value occurs twice in tensor_values");
  expect_words(error_with(R"("sizes": [{"as_int": 3})", R"("sizes": [{"as_ghost": 3})"),
               where + "graph.tensor_values.p_fc_weight.sizes[0]: unknown kind of size, as_ghost");
  expect_words(error_with(R"("layout": 7)", R"("layout": 77)"), "unknown layout 77");
  expect_words(error_with(R"("index": null)", R"("index": 1000)"), "a device index of 1000 is out of range");
}

// Traps of exporting.

TEST(Pt2, WarnsWhenGradientsAreLost) {
  const Program program = read("checkpoint_reentrant");
  ASSERT_EQ(program.warnings.size(), 2u);
  expect_words(program.warnings[0], "the loss is computed in a region without gradients");
  expect_words(program.warnings[1], "used only where gradients are disabled (8): a.0.weight, …");
  EXPECT_TRUE(read("checkpoint_strict").warnings.empty());
}

TEST(Pt2, WarnsOfAutocastThatDoesNotCast) {
  expect_words(read("autocast_disabled").warnings.at(0),
               "autocast regions for cuda are disabled in the file (1)");
  expect_words(read("autocast_outer").warnings.at(0), "aten::conv2d takes float32 and gives low precision");
  EXPECT_TRUE(read("autocast").warnings.empty());
}

}  // namespace
}  // namespace metaprof
