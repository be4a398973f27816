// When Python lets values go, from stack traces as a .pt2 has them (docs/explanation/lifetimes.md).

#include "program/source/lifetimes.h"

#include <gtest/gtest.h>

#include "meta/ops/all.h"
#include "program/source/conversions.h"
#include "program/source/frames.h"
#include "program/source/source.h"
#include "program/source/waiting_results.h"

namespace metaprof {
namespace {

// One call: "result = op(arguments)" and its stack, a line per frame: "function:line code".
struct Call {
  std::vector<std::string> results;
  std::string op;
  std::vector<std::string> arguments;
  std::vector<SourceLine> stack;
};

SourceLine at(int line, const std::string& code, const std::string& file = "model.py") {
  return {.file = file, .function = "forward", .code = code, .line = line};
}

class Model {
 public:
  explicit Model(const std::vector<std::string>& inputs) {
    for (const std::string& input : inputs) {
      program.graph.inputs.push_back(value(input));
      program.inputs.push_back({.value = value(input), .name = input, .constant = {}});
    }
  }

  Model& add(const Call& call) {
    program.graph.nodes.push_back(node_of(call));
    return *this;
  }

  // A call of a sub-graph, which has no stack of its own.
  Model& add_region(const std::vector<std::string>& results, const std::vector<std::string>& arguments,
                    const Call& inside) {
    GraphNode node = node_of({results, "higher_order::wrap_with_set_grad_enabled", arguments, {}});
    node.source = -1;
    auto body = std::make_shared<Graph>();
    body->nodes.push_back(node_of(inside));
    body->values = program.graph.values;  // under the same numbers
    for (const std::string& argument : arguments) body->inputs.push_back(value(argument));
    Operand operand;
    operand.kind = Operand::Kind::graph;
    operand.graph = body;
    node.operands.insert(node.operands.begin(), operand);
    program.graph.nodes.push_back(node);
    return *this;
  }

  // The call after which a value is let go; −1: by none.
  int dropped(const std::string& name) {
    Program told = program;
    find_drops(told.graph, FrameFinder(program).frames_of(program.graph), standard_registry());
    for (size_t i = 0; i < told.graph.nodes.size(); ++i)
      if (std::ranges::count(told.graph.nodes[i].drops, value(name))) return static_cast<int>(i);
    return -1;
  }

  // The graph with idle conversions undone.
  Graph undone() const {
    Graph graph = program.graph;
    undo_conversions(graph, FrameFinder(program).frames_of(graph), standard_registry());
    return graph;
  }

  ValueId value(const std::string& name) {
    for (size_t i = 0; i < program.graph.values.size(); ++i)
      if (program.graph.values[i].name == name) return static_cast<ValueId>(i);
    ValueFacts facts;
    facts.name = name;
    facts.tensor.emplace();
    facts.tensor->sizes = {2, 3};
    facts.tensor->strides = {3, 1};
    program.graph.values.push_back(facts);
    return static_cast<ValueId>(program.graph.values.size() - 1);
  }

  Program program;

 private:
  GraphNode node_of(const Call& call) {
    GraphNode node;
    node.op = call.op;
    for (const std::string& argument : call.arguments) {
      Operand operand;
      operand.kind = Operand::Kind::value;
      operand.value = value(argument);
      node.operands.push_back(operand);
    }
    for (const std::string& result : call.results) node.targets.push_back({.values = {value(result)}});
    node.source = static_cast<int32_t>(program.source_stacks.size());
    program.source_stacks.push_back(call.stack);
    return node;
  }
};

TEST(Lifetimes, ATemporaryGoesWithItsLastUseAVariableWithItsName) {
  Model model({"x"});
  model.add({{"a"}, "aten::relu", {"x"}, {at(1, "y = torch.relu(x).exp()")}})
      .add({{"b"}, "aten::exp", {"a"}, {at(1, "y = torch.relu(x).exp()")}})
      .add({{"c"}, "aten::neg", {"b"}, {at(2, "z = -y")}})
      .add({{"d"}, "aten::neg", {"c"}, {at(3, "y = -z")}})
      .add({{"e"}, "aten::neg", {"d"}, {at(4, "return -y")}});
  EXPECT_EQ(model.dropped("a"), 1) << "a temporary: when exp returns";
  EXPECT_EQ(model.dropped("b"), 3) << "y, until the name is bound again";
  EXPECT_EQ(model.dropped("c"), 4) << "z, until the function returns";
}

// y = torch.stack([f(x) for f in self.functions]): each turn calls another module, and all of it is one
// statement.
TEST(Lifetimes, AComprehensionIsOneStatement) {
  const SourceLine loop = at(1, "y = torch.stack([f(x) for f in self.functions])");
  const ModuleCall root{.path = "", .type = "Model", .key = "root"};
  Model model({"x"});
  for (const char* name : {"0", "1", "2"}) {
    model.add({{name}, "aten::relu", {"x"}, {loop, at(5, "return torch.relu(x)", "function.py")}});
    model.program.module_stacks.push_back(
        {root, {.path = std::string("functions.") + name, .type = "F", .key = name}});
    model.program.graph.nodes.back().modules = static_cast<int32_t>(model.program.module_stacks.size()) - 1;
  }
  model.add({{"y"}, "aten::stack", {"0", "1", "2"}, {loop}})
      .add({{"z"}, "aten::neg", {"y"}, {at(2, "z = -y")}})
      .add({{"end"}, "aten::neg", {"z"}, {at(3, "return -z")}});
  model.program.module_stacks.push_back({root});
  for (size_t node : {3, 4, 5}) model.program.graph.nodes[node].modules = 3;
  for (const char* name : {"0", "1", "2"}) EXPECT_EQ(model.dropped(name), 3) << "with the list, after stack";
}

// `parts.append(torch.relu(x))`: the list holds it until the function returns.
TEST(Lifetimes, AListHoldsWhatWasAppended) {
  Model model({"x"});
  model.add({{"a"}, "aten::relu", {"x"}, {at(1, "parts.append(torch.relu(x))")}})
      .add({{"b"}, "aten::exp", {"x"}, {at(2, "parts.append(torch.exp(x))")}})
      .add({{"c"}, "aten::cat", {"a", "b"}, {at(3, "y = torch.cat(parts)")}})
      .add({{"d"}, "aten::neg", {"c"}, {at(4, "y = -y")}})
      .add({{"e"}, "aten::neg", {"d"}, {at(5, "return -y")}});
  EXPECT_EQ(model.dropped("a"), 4);
  EXPECT_EQ(model.dropped("b"), 4);
}

// `xs = []` makes no call and is not seen; `xs = [torch.relu(x)]` is.
TEST(Lifetimes, AListThatIsBoundAgainLetsGo) {
  Model model({"x"});
  model.add({{"a"}, "aten::relu", {"x"}, {at(1, "xs.append(torch.relu(x))")}})
      .add({{"b"}, "aten::neg", {"a"}, {at(2, "y = -xs[0]")}})
      .add({{"c"}, "aten::exp", {"b"}, {at(3, "xs = [torch.exp(y)]")}})
      .add({{"d"}, "aten::neg", {"c"}, {at(4, "return -xs[0]")}});
  EXPECT_EQ(model.dropped("a"), 2);
}

TEST(Lifetimes, ALineMayOpenABlockAndBindAName) {
  EXPECT_EQ(bound_names("if i == 4: h = torch.cat([h, e], -1)"), std::vector<std::string>{"h"});
  EXPECT_EQ(bound_names("else: x, y = f(x)"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(bound_names("for layer in self.layers: x = layer(x)"), std::vector<std::string>{"x"});
  EXPECT_EQ(bound_names("if x[1:2].sum() == 0:"), std::vector<std::string>{});
  EXPECT_EQ(bound_names("if (x := f(y)) is None: return g(y)"), std::vector<std::string>{});
}

TEST(Lifetimes, ALineOfACallThatHasBegunBindsNothing) {
  EXPECT_EQ(bound_names("self.gate_fn(x), size=(y.shape[-2], y.shape[-1]), mode='nearest')"),
            std::vector<std::string>{});
  EXPECT_EQ(bound_names("x, scale=2)"), std::vector<std::string>{});
  EXPECT_EQ(bound_names("self.gate_fn(x), scale=2,"), std::vector<std::string>{});
  EXPECT_EQ(bound_names("(a, b) = f(x)"), (std::vector<std::string>{"a", "b"}));
}

// `out, _ = self.rnn(x)`: nobody uses the second result, but `_` holds it until the caller returns. In the
// module it was `result`, which would go when the module returns.
TEST(Lifetimes, AnElementOfAReturnedTupleHasTheCallersName) {
  const SourceLine caller = at(10, "out, _ = self.rnn(x)"), next = at(11, "return self.head(out)");
  Model model({"x"});
  model.add({{"out", "hidden"}, "aten::lstm.input", {"x"}, {caller, at(5, "result = _VF.lstm(x)", "rnn.py")}})
      .add({{"y"}, "aten::relu", {"out"}, {next}})
      .add({{"z"}, "aten::exp", {"y"}, {next}});
  EXPECT_EQ(model.dropped("hidden"), 2);
}

// `x = self.rnn(x)[0]`: the tuple is a temporary.
TEST(Lifetimes, ATupleThatNoNameHoldsGoesWithTheCall) {
  const SourceLine caller = at(10, "x = self.rnn(x)[0]"), next = at(11, "return self.head(x)");
  Model model({"x"});
  model.add({{"out", "hidden"}, "aten::lstm.input", {"x"}, {caller, at(5, "result = _VF.lstm(x)", "rnn.py")}})
      .add({{"y"}, "aten::relu", {"out"}, {next}})
      .add({{"z"}, "aten::exp", {"y"}, {next}});
  EXPECT_EQ(model.dropped("hidden"), 0);
}

// Without the stack of its calls the region would end the life of everything that it reads.
TEST(Lifetimes, ARegionStandsWhereItsCallsStand) {
  Model model({"x"});
  model.add({{"positions"}, "aten::relu", {"x"}, {at(1, "positions = torch.relu(x)")}})
      .add_region({"r"}, {"positions"},
                  {{"r"}, "aten::exp", {"positions"}, {at(2, "r = torch.exp(positions)")}})
      .add({{"y"}, "aten::neg", {"r"}, {at(3, "y = -r")}})
      .add({{"z"}, "aten::neg", {"y"}, {at(4, "return -y")}});
  EXPECT_EQ(model.dropped("positions"), 3) << "a variable, until the function returns";
}

// def attend(x): q, k = …; attn = q.matmul(k); return attn.softmax(-1).exp(): only the call of it is seen.
TEST(Lifetimes, FactorsInAFunctionWithoutAFrameAreVariables) {
  const std::vector<SourceLine> call = {at(1, "return attend(x)")};
  Model model({"x"});
  model.add({{"q"}, "aten::relu", {"x"}, call})
      .add({{"k"}, "aten::exp", {"x"}, call})
      .add({{"attn"}, "aten::matmul", {"q", "k"}, call})
      .add({{"p"}, "aten::neg", {"attn"}, call})
      .add({{"y"}, "aten::exp", {"p"}, call});
  EXPECT_EQ(model.dropped("q"), 4) << "when attend returns";
  EXPECT_EQ(model.dropped("attn"), 3) << "a pointwise operator's argument is none";

  const std::vector<SourceLine> expression = {at(1, "return torch.relu(x).matmul(torch.exp(x)).neg()")};
  Model plain({"x"});
  plain.add({{"q"}, "aten::relu", {"x"}, expression})
      .add({{"k"}, "aten::exp", {"x"}, expression})
      .add({{"attn"}, "aten::matmul", {"q", "k"}, expression})
      .add({{"y"}, "aten::neg", {"attn"}, expression});
  EXPECT_EQ(plain.dropped("q"), 2) << "no function of the model's: an expression's temporary";
}

// torch.nn.functional.multi_head_attention_forward is Python, too: what attention takes is held until it returns. Other
// functions of that module are one operator each.
TEST(Lifetimes, MultiHeadAttentionHasVariables) {
  const auto dropped = [](const std::string& function) {
    const std::vector<SourceLine> call = {at(1, "y = F." + function + "(x)")};
    Model model({"x"});
    model.add({{"q"}, "aten::relu", {"x"}, call})
        .add({{"attn"}, "aten::matmul", {"q", "q"}, call})
        .add({{"y"}, "aten::exp", {"attn"}, call});
    return model.dropped("q");
  };
  EXPECT_EQ(dropped("multi_head_attention_forward"), 2);
  EXPECT_EQ(dropped("linear"), 1);
}

// def bias(x, y): rows = x.matmul(y); columns = y.matmul(x); return (rows + columns).exp(): results of
// products that wait for each other have names.
TEST(Lifetimes, ProductsThatWaitInAFunctionWithoutAFrameAreVariables) {
  const std::vector<SourceLine> call = {at(1, "return bias(x, y)")};
  Model model({"x", "y"});
  model.add({{"rows"}, "aten::matmul", {"x", "y"}, call})
      .add({{"columns"}, "aten::matmul", {"y", "x"}, call})
      .add({{"sum"}, "aten::add.Tensor", {"rows", "columns"}, call})
      .add({{"z"}, "aten::exp", {"sum"}, call});
  EXPECT_EQ(model.dropped("rows"), 3);
  EXPECT_EQ(model.dropped("columns"), 3);
  EXPECT_EQ(model.dropped("sum"), 3) << "exp takes it last";
}

// def project(q, k): q = q.matmul(w); kv = k.matmul(w).exp(); return q + kv: while q waits, the other product is taken at once.
TEST(Lifetimes, AProductThatTheNextCallTakesAloneIsNoVariable) {
  const std::vector<SourceLine> call = {at(1, "return project(x, y)")};
  Model model({"x", "y"});
  model.add({{"q"}, "aten::matmul", {"x", "y"}, call})
      .add({{"kv"}, "aten::matmul", {"y", "x"}, call})
      .add({{"copy"}, "aten::exp", {"kv"}, call})
      .add({{"z"}, "aten::add.Tensor", {"q", "copy"}, call});
  EXPECT_EQ(model.dropped("q"), 3);
  EXPECT_EQ(model.dropped("kv"), 2);
}

// attn = add_bias(attn), which writes to attn and returns it: the name goes on to hold the same tensor.
TEST(Lifetimes, WhatAFunctionWritesToComesBackFromIt) {
  Model model({"x"});
  model.add({{"attn"}, "aten::exp", {"x"}, {at(1, "attn = torch.exp(x)")}})
      .add({{"part"}, "aten::slice.Tensor", {"attn"}, {at(2, "attn = add_bias(attn)")}})
      .add({{"written"}, "aten::add_.Tensor", {"part", "x"}, {at(2, "attn = add_bias(attn)")}})
      .add({{"p"}, "aten::neg", {"attn"}, {at(3, "attn = -attn")}})
      .add({{"y"}, "aten::neg", {"p"}, {at(4, "return -attn")}});
  EXPECT_EQ(model.dropped("attn"), 3) << "when attn is bound to the negative";

  Model residual({"x"});
  residual.add({{"h"}, "aten::exp", {"x"}, {at(1, "h = torch.exp(x)")}})
      .add({{"n"}, "aten::neg", {"h"}, {at(2, "h = norm(h)")}})
      .add({{"s"}, "aten::add.Tensor", {"h", "n"}, {at(3, "h = residual + h")}})
      .add({{"y"}, "aten::neg", {"s"}, {at(4, "return -h")}});
  EXPECT_EQ(residual.dropped("h"), 3) << "only read: another name holds it, until the function returns";
}

// a, b = block(a, b), of which no call takes a: block returns it as it is, and the name goes on to hold it.
TEST(Lifetimes, WhatAFunctionTakesNoNoticeOfComesBackFromIt) {
  const auto model_of = [](const std::string& binding) {
    Model model({"x"});
    model.add({{"a"}, "aten::exp", {"x"}, {at(1, "a = torch.exp(x)")}})
        .add({{"b"}, "aten::exp", {"a"}, {at(2, "b = torch.exp(a)")}})
        .add({{"c"}, "aten::neg", {"b"}, {at(3, binding), at(9, "return a, -b", "block.py")}})
        .add({{"d"}, "aten::neg", {"c"}, {at(4, "b = -b")}})
        .add({{"y"}, "aten::neg", {"d"}, {at(5, "return -b")}});
    return model;
  };
  EXPECT_EQ(model_of("a, b = self.block(a, b)").dropped("a"), 4) << "when the function returns";
  EXPECT_EQ(model_of("a, b = self.block(b)").dropped("a"), 2) << "it was not passed";
}

// RMSNorm: h = h.to(torch.float32); h = h * h; return h. The caller's residual is the tensor before.
Model norm_and_residual(const std::string& last) {
  const SourceLine caller = at(10, "h = self.norm(x)"), sum = at(11, "return x + h");
  Model model({"ids"});
  model.add({{"x"}, "aten::relu", {"ids"}, {at(9, "x = torch.relu(ids)")}})
      .add({{"wide"}, "aten::to.dtype", {"x"}, {caller, at(1, "h = h.to(torch.float32)", "norm.py")}})
      .add({{"square"}, "aten::mul.Tensor", {"wide", "wide"}, {caller, at(2, last, "norm.py")}})
      .add({{"y"}, "aten::add.Tensor", {"wide", "square"}, {sum}});
  return model;
}

TEST(Conversions, OutsideOfItsFunctionAnIdleConversionIsItsArgument) {
  Model model = norm_and_residual("h = h * h");
  const Graph graph = model.undone();
  EXPECT_EQ(graph.nodes[2].operands[0].value, model.value("wide")) << "inside it is the converted one";
  EXPECT_EQ(graph.nodes[3].operands[0].value, model.value("x")) << "the residual is not";
}

// variance = h.to(torch.float32).pow(2); return h * variance: h itself was not converted.
TEST(Conversions, OutsideOfItsStatementATemporaryIsItsArgument) {
  Model model({"h"});
  model.add({{"wide"}, "aten::to.dtype", {"h"}, {at(1, "variance = h.to(torch.float32).pow(2)")}})
      .add({{"variance"},
            "aten::mul.Tensor",
            {"wide", "wide"},
            {at(1, "variance = h.to(torch.float32).pow(2)")}})
      .add({{"y"}, "aten::mul.Tensor", {"wide", "variance"}, {at(2, "return h * variance")}});
  const Graph graph = model.undone();
  EXPECT_EQ(graph.nodes[1].operands[0].value, model.value("wide"));
  EXPECT_EQ(graph.nodes[2].operands[0].value, model.value("h"));
}

TEST(Conversions, WhatTheFunctionReturnsStaysConverted) {
  Model model = norm_and_residual("return h * h, h");
  EXPECT_EQ(model.undone().nodes[3].operands[0].value, model.value("wide"));
}

// Memory runs out in call `failed`: the calls whose results go with the error, newest first.
using Gone = std::vector<size_t>;

TEST(WaitingResults, AnErrorTakesWhatNoNameHolds) {
  const std::string code = "y = 0.5 * x * (1.0 + torch.tanh(x))";
  Model model({"x"});
  model.add({{"n"}, "aten::neg", {"x"}, {at(1, "n = -x")}})
      .add({{"a"}, "aten::mul.Tensor", {"x"}, {at(2, code)}})
      .add({{"b"}, "aten::tanh", {"x"}, {at(2, code)}})
      .add({{"c"}, "aten::add.Tensor", {"b"}, {at(2, code)}})
      .add({{"d"}, "aten::mul.Tensor", {"a", "c"}, {at(2, code)}})
      .add({{"e"}, "aten::sub.Tensor", {"n", "d"}, {at(3, "return n - y")}});
  EXPECT_EQ(waiting_results(model.program, 0), Gone{});
  EXPECT_EQ(waiting_results(model.program, 2), Gone{1});
  EXPECT_EQ(waiting_results(model.program, 3), (Gone{2, 1}));
  EXPECT_EQ(waiting_results(model.program, 4), (Gone{3, 2, 1}))
      << "tanh's goes with the sum, which has saved it";
  EXPECT_EQ(waiting_results(model.program, 5), Gone{}) << "y and n have names";
}

// "x + self.fc(torch.exp(x))": the result of exp is fc's parameter; what saved it there keeps it.
TEST(WaitingResults, AParameterHasAName) {
  const std::string code = "return torch.neg(x) + self.fc(torch.exp(torch.abs(x)))";
  const auto inside = [&](const std::string& inner) {
    return std::vector{at(1, code), at(7, inner, "fc.py")};
  };
  Model model({"x"});
  model.add({{"a"}, "aten::neg", {"x"}, {at(1, code)}})
      .add({{"b"}, "aten::abs", {"x"}, {at(1, code)}})
      .add({{"c"}, "aten::exp", {"b"}, {at(1, code)}})
      .add({{"d"}, "aten::sin", {"c"}, inside("return input.sin().cos()")})
      .add({{"e"}, "aten::cos", {"d"}, inside("return input.sin().cos()")})
      .add({{"f"}, "aten::add.Tensor", {"a", "e"}, {at(1, code)}});
  model.program.graph.nodes[3].modules = model.program.graph.nodes[4].modules = 0;
  model.program.module_stacks = {
      {{.path = "", .type = "Model", .key = ""}, {.path = "fc", .type = "Fc", .key = "fc"}}};
  EXPECT_EQ(waiting_results(model.program, 4), (Gone{3, 0}));
  EXPECT_EQ(waiting_results(model.program, 5), (Gone{4, 3, 2, 1, 0})) << "fc has returned";
}

// Variables of a function that leaves no frame cannot be told from temporaries.
TEST(WaitingResults, WhatAFunctionWithoutAFrameMakesStays) {
  const std::string code = "y = attend(x)";
  Model model({"x"});
  model.add({{"a"}, "aten::neg", {"x"}, {at(1, code)}})
      .add({{"b"}, "aten::exp", {"a"}, {at(1, code)}})
      .add({{"c"}, "aten::mul.Tensor", {"a", "b"}, {at(1, code)}});
  EXPECT_EQ(waiting_results(model.program, 2), Gone{});
}

TEST(WaitingResults, WithoutASourceNothingIsKnown) {
  Model model({"x"});
  model.add({{"a"}, "aten::neg", {"x"}, {}}).add({{"b"}, "aten::exp", {"a"}, {}});
  EXPECT_EQ(waiting_results(model.program, 1), Gone{});
  EXPECT_EQ(waiting_results(model.program, 7), Gone{}) << "no such node";
}

}  // namespace
}  // namespace metaprof
