// Programs as text (docs/reference/program.md): what a line says, and what is said of lines that are none.

#include "program/text/text.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"

namespace metaprof {
namespace {

Program parsed(const std::string& lines) { return parse_program("metaprof program 1\n" + lines, "net.mp"); }

std::string message(const std::string& lines) {
  try {
    parsed(lines);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Every kind of line, as the printer writes it.
constexpr std::string_view kEverything = R"text(metaprof program 1
name "a model"
evaluation
captured torch 2.11.0+cu130 device h200 memory 150121545728 alloc_conf "a:1,b:2" workspaces none
environment CUBLAS_WORKSPACE_CONFIG ":16:8"
measured setup 0 -1 512 1024 100 612 512 1024 2097152 2097152 0 0 1 2 1 1
requests 100 512 -1
measured forward 1 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0
warning "the parameter b is used by no call: it gets no gradient"
symbol s27 = 4 in 2 to 512
symbol s28 = 6
range u0 in 0 to any
expression e0 hint 4 = "Symbol('s27')"
expression e1 = "Mul(Integer(6), FloorDiv(Symbol('s27'), Integer(-2)), unknown_to_us())"
resized 2 to 4
module "" zoo.Net
module fc torch.nn.modules.linear.Linear
module "odd name"
type helper zoo.Helper
parameter fc.weight = %w: f32[4,3] grad
parameter head.weight = %h: f32[4,3] grad tied fc.weight
buffer scale = %scale: f32[] not_persistent
constant_tensor block.lifted_tensor_0 = %lifted: i64[2] on cpu
input x = %x: f32[4<e0>,3](1,4<e0>) offset 2 exported [2,3]
input n = %n: int 4<e0>
constant alpha = 0.5
constant "" = None as %unused
scope m1 = "" key L__self__
scope m2 = fc type Other key fc@1 in m1
file f1 = "/models/net.py"
line l1 = f1 12 forward "x = f(\"a\\n\", x)\n"
stack s1 = l1
line l2 = f1 40 "<lambda>" "\x01é"
stack s2 = l2 in s1
() = aten::_assert_scalar(%n, "text") in m2 at s2
%"odd name": f32[2] = "odd op"(ints[%n, 4], ints[3], tensors[], reals[], booleans[], []) at s1
%8: int 3 real 0.5 = mylib::f([True, False], [1, -2], [0.5, 1.0], [None, %x], complex(1.0, -2.5), generator)
_, [%p: c64[2], _] = mylib::g(device(cpu), device(model), device(cuda:1), inf, nan, 1e-05, dtype=bf16, 15)
checkpoint reentrant {
  %q: f32[2] on cuda:0 = mylib::h("odd arg"=unknown("as_thing")) in m1 dtype_named dtype_of %x without_autocast
}
checkpoint keep aten::mm(0, 2) mylib::h() {
  %k: f32[2] = mylib::h(%q)
}
checkpoint whole keep aten::mm() {
  %l: f32[2] = mylib::h(%q)
}
graph {
  input %x: f32[2]
  input _
  graph {
    return 3
  } as g0
  %y: f32[2] = higher_order::cond(%x, graph(g0)) in m1 drop %y
  return %x
} as g1
%r: f32[2] = higher_order::wrap_with_set_grad_enabled(False, graph(g1), %q) drop %"odd name", %8, %q
step::phase("forward", 0, -1)
step::autocast_enter(True, 15, True)
[%g: f32[2], _] = step::backward([%r], [None], False, False, tensors[], True)
loss = %r
buffer_mutation scale = %x
parameter_mutation fc.weight = %w
input_mutation x = %x
gradient fc.weight = [%w, %h]
output = 4
)text";

TEST(ProgramText, EverythingComesBack) {
  EXPECT_EQ(to_text(parse_program(kEverything, "net.mp")), kEverything);
}

// Texts with characters changed, left out or put in twice: a message or a program, which has a text again.
TEST(ProgramText, MutatedTextsGetAMessageOrAProgram) {
  std::mt19937 random(1);
  const auto any = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  size_t programs = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text(kEverything);
    for (size_t changes = 1 + any(3); changes > 0; --changes) {
      const size_t at = any(text.size()), length = std::min(text.size() - at, 1 + any(20));
      switch (any(3)) {
        case 0: text[at] = kEverything[any(kEverything.size())]; break;
        case 1: text.erase(at, length); break;
        default: text.insert(any(text.size()), text.substr(at, length));
      }
    }
    try {
      const std::string printed = to_text(parse_program(text, "net.mp"));
      ++programs;
      ASSERT_EQ(to_text(parse_program(printed, "net.mp")), printed) << text;
    } catch (const Error& error) {
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(programs, 500u);
}

TEST(ProgramText, LinesSayWhatAProgramHolds) {
  const Program program = parsed(R"text(
parameter fc.weight = %w: f32[4,3] grad   # a comment
input x = %x: f32[2,3]
module "" zoo.Net
module fc torch.nn.Linear
scope m1 = ""
scope m2 = fc key fc@1 in m1
file f1 = "net.py"
line l1 = f1 12 forward "y = self.fc(x)"
stack s1 = l1
%y: f32[2,4], _ = aten::linear(%x, weight=%w, bias=None) in m2 at s1
checkpoint reentrant {
  %z: bf16[2,4](1,2) offset 3 = aten::to.dtype(%y, dtype=bf16, other=[1, 2], real=[0.5]) dtype_of %x drop %y
}
[%a: f32[2,2], %b: f32[2,2]] = aten::chunk(%z, 2, 1) dtype_named without_autocast copies_to_view keep %b until %y drop %z
loss = %a
)text");
  ASSERT_EQ(program.graph.nodes.size(), 3u);
  const GraphNode& linear = program.graph.nodes[0];
  EXPECT_EQ(linear.op, "aten::linear");
  EXPECT_EQ(linear.operand_named("weight")->value, 0);
  EXPECT_TRUE(linear.operand_named("bias")->constant.is_none());
  EXPECT_EQ(linear.targets.size(), 2u);
  EXPECT_EQ(linear.targets[1].values, std::vector<ValueId>{kNoValue});
  const std::vector<ModuleCall> modules = {{.path = "", .type = "zoo.Net", .key = ""},
                                           {.path = "fc", .type = "torch.nn.Linear", .key = "fc@1"}};
  EXPECT_EQ(program.module_stacks.at(size_t(linear.modules)), modules);
  const SourceLine line{.file = "net.py", .function = "forward", .code = "y = self.fc(x)", .line = 12};
  EXPECT_EQ(program.source_stacks.at(size_t(linear.source)), std::vector<SourceLine>{line});
  const GraphNode& to = program.graph.nodes[1];
  EXPECT_EQ(to.dtype_of, 1);
  EXPECT_EQ(to.drops, std::vector<ValueId>{2});
  EXPECT_EQ(to.operands[1].constant.integer(), int64_t{static_cast<int8_t>(DType::bf16)});
  EXPECT_EQ(program.graph.checkpoints,
            (std::vector<CheckpointRegion>{{.begin = 1, .end = 2, .reentrant = true}}));
  const TensorFacts& z = *program.graph.values[3].tensor;
  EXPECT_EQ(z.strides, (Sizes{1, 2}));
  EXPECT_EQ(z.offset, 3);
  const GraphNode& chunk = program.graph.nodes[2];
  EXPECT_TRUE(chunk.targets[0].list && chunk.dtype_named && chunk.without_autocast && chunk.copies_to_view);
  EXPECT_EQ(chunk.drops, std::vector<ValueId>{3});
  EXPECT_EQ(chunk.keeps, (std::vector<KeptValue>{{.value = 5, .until = 2}}));
  EXPECT_EQ(program.loss(), 4);
}

TEST(ProgramText, GraphsStandBeforeTheCallThatTakesThem) {
  const Program program = parsed(R"text(
input x = %x: f32[2]
graph {
  input %a: f32[2]
  input _
  %b: f32[2] = aten::relu(%a)
  return %b
} as g0
%y: f32[2] = higher_order::wrap_with_set_grad_enabled(False, graph(g0), %x)
output = %y
)text");
  const Graph& inner = *program.graph.nodes.at(0).operands.at(1).graph;
  EXPECT_EQ(inner.inputs, (std::vector<ValueId>{0, kNoValue}));
  EXPECT_EQ(inner.outputs.at(0).value, 1);
  EXPECT_EQ(inner.values[1].name, "b");
}

// Values without a name, and names that two values have, are numbered in the order in which they are made.
TEST(ProgramText, ValuesWithoutANameOfTheirOwnAreNumbered) {
  Program program =
      parsed("input x = %x: f32[2]\n%y: f32[2] = aten::relu(%x)\n%z: f32[2] = aten::relu(%y)\noutput = %z\n");
  program.graph.values[1].name.clear();
  program.graph.values[2].name = "x";
  const std::string text = to_text(program);
  EXPECT_NE(text.find("%1: f32[2] = aten::relu(%x)\n%2: f32[2] = aten::relu(%1)\noutput = %2"),
            std::string::npos)
      << text;
  EXPECT_EQ(to_text(parse_program(text, "net.mp")), text);
}

struct Wrong {
  const char* lines;
  const char* message;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.lines; }

class WrongPrograms : public testing::TestWithParam<Wrong> {};

TEST_P(WrongPrograms, GetOneClearLine) {
  EXPECT_EQ(message(GetParam().lines), GetParam().message) << GetParam().lines;
}

INSTANTIATE_TEST_SUITE_P(
    ProgramText, WrongPrograms,
    testing::Values(
        Wrong{"%y = aten::relu(%x)", "net.mp:2: there is no value %x yet"},
        Wrong{"%y = aten::relu(%y)", "net.mp:2: the call takes a value that it makes itself"},
        Wrong{"%y = a::b()\n%y = a::b()", "net.mp:3: the value %y is made twice"},
        Wrong{"%y = aten::relu(", "net.mp:2: the line ends where a constant is expected"},
        Wrong{"%y = a::b() drop %y\n%z = a::b(%y)", "net.mp:3: the value %y has been dropped"},
        Wrong{"%y = aten::relu() drop y", "net.mp:2: expected a value as %x before 'y'"},
        Wrong{
            "%y = aten::relu() forever",
            "net.mp:2: expected in, at, dtype_named, dtype_of, without_autocast, copies_to_view, keep, drop, "
            "or the end of the line before 'forever'"},
        Wrong{"%y = a::b() keep %y",
              "net.mp:2: the line ends where 'until' and the value that the next run makes in its place is "
              "expected"},
        Wrong{"graph {\n%y = a::b() keep %y until %y",
              "net.mp:3: only the program's own calls make what outlives a run"},
        Wrong{"%y: f99[2] = a::b()",
              "net.mp:2: expected a tensor as f32[2,3], 'int' or 'real' before 'f99[2] = a::b()'"},
        Wrong{"%y: f32[-2] = a::b()", "net.mp:2: y: negative size in [-2]"},
        Wrong{"%y: f32[9000000000000000000,4] = a::b()",
              "net.mp:2: overflow: the number of elements of [9000000000000000000,4] exceeds 64 bits"},
        Wrong{"%y: f32[2](1,1) = a::b()", "net.mp:2: 2 strides for 1 sizes"},
        Wrong{"%y: f32[2<e0>] = a::b()", "net.mp:2: there is no expression e0"},
        Wrong{"expression e0 = \"Add(\"",
              "net.mp:2: malformed expression 'Add(': expected a name at character 4"},
        Wrong{"expression e4 = \"Integer(1)\"", "net.mp:2: expressions are numbered in order: e0 is next"},
        Wrong{"%y = a::b(\"x", "net.mp:2: a text has no closing quote"},
        Wrong{"%y = a::b(\"\\q\")",
              "net.mp:2: a text has an escape that is none of \\\" \\\\ \\n \\t \\r \\xHH \\uHHHH"},
        Wrong{"%y = a::b(\"\\u12\")", "net.mp:2: an escape \\u needs four hexadecimal digits"},
        Wrong{"%y = a::b(\"\\ud800\")", "net.mp:2: an escape \\u of half a character"},
        Wrong{"%y = a::b(word)",
              "net.mp:2: 'word' is no constant: texts stand in quotes, values begin with %"},
        Wrong{"%y = a::b([1, 0.5])", "net.mp:2: the elements of a list are of different kinds"},
        Wrong{"%y = a::b([1, None])", "net.mp:2: a list of integers and values is written as ints[4, %n]"},
        Wrong{"%y = a::b(device(tpu))",
              "net.mp:2: 'tpu' is no device; known: cpu, cuda:0 to cuda:127, model"},
        Wrong{"%y = a::b(graph(g0))", "net.mp:2: there is no such graph yet"},
        Wrong{"graph {\n} as g0\n%y = a::b(graph(g0), graph(g0))", "net.mp:4: two calls take the same graph"},
        Wrong{"graph {", "net.mp:2: the graph of line 2 is not closed with '}'"},
        Wrong{"checkpoint keep aten::mm(2, 1) {",
              "net.mp:2: numbers of calls that are kept are not negative, and rise"},
        Wrong{"checkpoint reentrant keep aten::mm(0) {", "net.mp:2: a reentrant checkpoint keeps no results"},
        Wrong{"checkpoint reentrant whole {",
              "net.mp:2: a reentrant checkpoint is always recomputed to its end"},
        Wrong{"checkpoint {", "net.mp:2: a checkpoint is not closed with '}'"},
        Wrong{"checkpoint {\n}", "net.mp:3: a checkpoint without calls"},
        Wrong{"checkpoint {\ncheckpoint {", "net.mp:3: a checkpoint inside a checkpoint"},
        Wrong{"}", "net.mp:2: nothing is open that '}' could close"},
        Wrong{"parameter w = _", "net.mp:2: 'w' needs a tensor as %x: f32[2,3]"},
        Wrong{"parameter w = %w: f32[2] tied v", "net.mp:2: there is no input 'v' yet"},
        Wrong{"a::b()\ninput x = %x: f32[2]", "net.mp:3: inputs stand before the first call"},
        Wrong{"a::b() in m1", "net.mp:2: there is no stack m1 yet"},
        Wrong{"stack s1 = l1", "net.mp:2: there is no source line l1 yet"},
        Wrong{"scope m1 = a\nscope m1 = b", "net.mp:3: m1 is defined twice, or 0"},
        Wrong{"symbol s = x", "net.mp:2: expected the value of the symbol before 'x'"}));

TEST(ProgramText, TheFirstLineSaysWhatItIs) {
  const auto said = [](const char* text) -> std::string {
    try {
      parse_program(text, "net.mp");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(said(""), "net.mp:1: the text is empty; a program begins with 'metaprof program 1'");
  EXPECT_EQ(said("PK"), "net.mp:1: a program begins with 'metaprof program 1'");
  EXPECT_EQ(said("metaprof program 1\nname \"\xff\""), "net.mp:2: a character that is not UTF-8");
  EXPECT_EQ(said("metaprof program 2"), "net.mp:1: version 2 is not known; this program reads version 1");
}

// A kilobyte of text may not ask for a gigabyte: each call of the innermost stack would hold all levels.
TEST(ProgramText, StacksAreBounded) {
  std::string text = "module \"" + std::string(4'000'000, 'm') + "\"\nscope m1 = a type \"" +
                     std::string(4'000'000, 't') + "\"\n";
  for (int i = 2; i <= 100; ++i)
    text += "scope m" + std::to_string(i) + " = a in m1\na::b() in m" + std::to_string(i) + "\n";
  EXPECT_NE(message(text).find("the stacks of all calls take more than 256 MiB"), std::string::npos);
  std::string deep = "scope m1 = a\n";
  for (int i = 2; i <= 1001; ++i)
    deep += "scope m" + std::to_string(i) + " = a in m" + std::to_string(i - 1) + "\n";
  EXPECT_EQ(message(deep), "net.mp:1002: a stack of more than 1000 levels");
}

}  // namespace
}  // namespace metaprof
