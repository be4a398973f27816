// Code of torch.jit in archives that tests write: what it computes, what lives how long, and every message.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "estimate/prepare/model_inputs.h"
#include "program/text/text.h"
#include "program/torchscript/torchscript.h"
#include "tests/stored_archive.h"

namespace metaprof {
namespace {

using namespace std::string_literals;

// Pickles of protocol 2, as torch.jit writes them.
std::string pickled_text(const std::string& text) {
  return "X" + std::string(1, static_cast<char>(text.size())) + "\0\0\0"s + text;
}
std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string tensor_of(const std::string& sizes, const std::string& strides,
                      const std::string& requires_grad = "\x88") {
  return global("torch._utils", "_rebuild_tensor_v2") + "((" + pickled_text("storage") +
         global("torch", "FloatStorage") + pickled_text("0") + pickled_text("cpu") + "K\4tQK\0"s + sizes +
         strides + requires_grad + global("collections", "OrderedDict") + ")RtR";
}
const std::string kFour = tensor_of("K\4\x85"s, "K\1\x85"s);
std::string object_of(const std::string& module, const std::string& name, const std::string& state) {
  return global(module, name) + ")\x81}(" + state + "ub";
}
std::string attribute(const std::string& name, const std::string& value) {
  return pickled_text(name) + value;
}

// The module has a parameter w of 4 numbers, numbers n = 3 and k = 0, and a flag.
std::string archive_of(const std::string& code, const std::string& state = attribute("w", kFour) +
                                                                           attribute("n", "K\3"s) +
                                                                           attribute("training", "\x88")) {
  return stored_archive(
      {{"m/data.pkl", "\x80\2"s + object_of("__torch__", "M", state) + "."}, {"m/code/__torch__.py", code}});
}

std::string path_of_archive() {
  return (std::filesystem::temp_directory_path() / fmt::format("metaprof_script_{}.pt", ::getpid())).string();
}

Program program_of(const std::string& bytes, const std::map<std::string, ScriptInput>& inputs,
                   ScriptMode mode = {}) {
  const std::string path = path_of_archive();
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    Program program = ScriptFile(path).program(inputs, mode);
    std::filesystem::remove(path);
    return program;
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
}

const ScriptInput kX{.dtype = DType::f32, .sizes = {2, 4}, .number = {}};

std::string module_with(const std::string& body) {
  std::string code =
      "class M(Module):\n"
      "  __parameters__ = [\"w\", ]\n"
      "  __buffers__ = []\n"
      "  w : Tensor\n"
      "  n : int\n"
      "  training : bool\n"
      "  def forward(self: __torch__.M,\n"
      "    x: Tensor) -> Tensor:\n";
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = std::min(body.find('\n', begin), body.size());
    code += "    " + body.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return code;
}

// Operators that are called, in order, each with the number of values that go behind it.
std::string calls_of(const Program& program) {
  std::string calls;
  for (const GraphNode& node : program.graph.nodes)
    calls += fmt::format("{}{}:{}", calls.empty() ? "" : " ", node.op.substr(6), node.drops.size());
  return calls;
}
std::string calls_of(const std::string& body) {
  return calls_of(program_of(archive_of(module_with(body)), {{"x", kX}}));
}

std::string error_of(const std::string& bytes,
                     const std::map<std::string, ScriptInput>& inputs = {{"x", kX}}) {
  try {
    program_of(bytes, inputs);
  } catch (const Error& error) {
    const std::string message = error.what(), path = path_of_archive();
    return message.starts_with(path) ? "FILE" + message.substr(path.size()) : message;
  }
  return "no error";
}
std::string error_of_body(const std::string& body) { return error_of(archive_of(module_with(body))); }

TEST(ScriptCode, CallsChooseOverloadsByTheirArguments) {
  EXPECT_EQ(calls_of("y = torch.add(x, self.w)\nreturn torch.mul(y, 2.)"), "add.Tensor:0 mul.Scalar:1");
  EXPECT_EQ(calls_of("return torch.sum(x)"), "sum:0");
  EXPECT_EQ(calls_of("return torch.sum(x, [1])"), "sum.dim_IntList:0");
  EXPECT_EQ(calls_of("return torch.max(x, 1)"), "max.dim:0");
  EXPECT_EQ(calls_of("return torch.to(x, 5)"), "to.dtype:0");
  EXPECT_EQ(calls_of("return torch.cat(torch.chunk(x, 2, 1), 0)"), "chunk:0 cat:2");
}

TEST(ScriptCode, BranchesOnNumbersAreDecided) {
  const std::string kBody =
      "if torch.gt(self.n, 2):\n"
      "  y = torch.relu(x)\n"
      "else:\n"
      "  y = torch.tanh(x)\n"
      "return y";
  EXPECT_EQ(calls_of(kBody), "relu:0");
  EXPECT_EQ(calls_of("y = x\nfor i in range(self.n):\n  y = torch.relu(y)\nreturn y"),
            "relu:0 relu:1 relu:1");
  EXPECT_EQ(
      calls_of("k = 0\ny = x\nwhile torch.lt(k, 2):\n  y = torch.tanh(y)\n  k = torch.add(k, 1)\nreturn y"),
      "tanh:0 tanh:1");
}

TEST(ScriptCode, TrainingIsWhatIsAskedFor) {
  const std::string bytes =
      archive_of(module_with("if self.training:\n  y = torch.relu(x)\nelse:\n  y = x\nreturn torch.sum(y)"));
  EXPECT_EQ(calls_of(program_of(bytes, {{"x", kX}})), "relu:0 sum:1");
  EXPECT_EQ(calls_of(program_of(bytes, {{"x", kX}}, {.training = false})), "sum:0");
}

TEST(ScriptCode, GradientsAreOnInEvaluation) {
  const std::string bytes = archive_of(
      module_with("if torch.is_grad_enabled():\n  y = torch.relu(x)\nelse:\n  y = x\nreturn torch.sum(y)"));
  EXPECT_EQ(calls_of(program_of(bytes, {{"x", kX}}, {.training = false})), "relu:0 sum:1");
  EXPECT_EQ(calls_of(program_of(bytes, {{"x", kX}}, {.training = false, .gradients = false})), "sum:0");
}

// `a` is used last inside a branch that stays in the graph, and goes where the branch ends; in one that constants decide
// it goes behind its use.
TEST(ScriptCode, ValuesLiveToTheEndOfABranchInWhichTheyAreUsedLast) {
  const auto body = [](const std::string& condition) {
    return "a = torch.relu(x)\nif " + condition +
           ":\n  b = torch.tanh(a)\n  c = torch.exp(b)\nelse:\n  c = a\nreturn torch.sum(c)";
  };
  EXPECT_EQ(calls_of(body("torch.gt(self.n, 2)")), "relu:0 tanh:0 exp:2 sum:1");
  EXPECT_EQ(calls_of(body("torch.gt(3, 2)")), "relu:0 tanh:1 exp:1 sum:1");
  EXPECT_EQ(calls_of(body("torch.__isnot__(x, None)")), "relu:0 tanh:1 exp:1 sum:1");
}

TEST(ScriptCode, NumbersListsAndTexts) {
  const auto is = [](const std::string& expression, const std::string& expected) {
    EXPECT_EQ(error_of_body("ops.prim.RaiseException(torch.str(" + expression + "))"),
              "FILE: __torch__.py:9: the model raises: " + expected)
        << expression;
  };
  is("torch.floordiv(-7, 2)", "-4");
  is("torch.remainder(-7, 2)", "1");
  is("torch.div(7, 2)", "3.5");
  is("torch.pow(2, 10)", "1024");
  is("torch.pow(4, -0.5)", "0.5");
  is("torch.neg(self.n)", "-3");
  is("torch.size(x)", "[2, 4]");
  is("torch.size(x, -1)", "4");
  is("torch.slice([1, 2, 3, 4], 1, None, 2)", "[2, 4]");
  is("torch.slice([1, 2, 3], None, None, -1)", "[3, 2, 1]");
  is("torch.add([1], [2])", "[1, 2]");
  is("torch.mul([0], 3)", "[0, 0, 0]");
  is("torch.append([1], 2)", "[1, 2]");
  is("torch.__contains__([1, 2], 2)", "True");
  is("torch.format(\"{} of {}\", 1, \"a\\x41\")", "1 of aA");
  is("{\"a\": 1, \"b\": 2}[\"b\"]", "2");
  is("(1, 2.5, None)", "(1, 2.5, None)");
  is("float(\"inf\")", "inf");
  is("-inf", "-inf");
  is("int(2.9)", "2");
  is("isinstance(x, Tensor)", "True");
  is("annotate(List[int], [])", "[]");
  is("ops.prim.dtype(x)", "6");
  is("ops.prim.type(ops.prim.device(x))", "cuda");
  is("torch.is_grad_enabled()", "True");
  is("ops.prim.requires_grad(self.w)", "True");
  is("ops.prim.requires_grad(x)", "False");
  is("ops.prim.requires_grad(torch.mul(x, self.w))", "True");
}

TEST(ScriptCode, TheConditionStandsForTensorsThatDecide) {
  const std::string code =
      archive_of(module_with("if bool(torch.gt(torch.sum(x), 0)):\n  y = torch.relu(x)\nelse:\n  y = "
                             "torch.tanh(x)\nreturn torch.mul(y, self.w)"));
  for (const bool condition : {true, false}) {
    const Program program = program_of(code, {{"x", kX}}, {.condition = condition});
    const auto calls = [&](const char* op) {
      return std::ranges::count(program.graph.nodes, op, &GraphNode::op);
    };
    EXPECT_EQ(calls("aten::relu"), condition ? 1 : 0);
    EXPECT_EQ(calls("aten::tanh"), condition ? 0 : 1);
    EXPECT_EQ(program.followed, 1U);
  }
}

TEST(ScriptCode, MessagesSayWhereAndWhat) {
  const std::string at = "FILE: __torch__.py:9: ";
  EXPECT_EQ(error_of_body("if torch.gt(torch.sum(x), 0):\n  pass\nreturn x"),
            at +
                "the value of a tensor decides here, and no tensor has values; choose with --condition, give "
                "what decides as a number, or save the model without that branch");
  EXPECT_EQ(error_of_body("return y"), at + "'y' has no value here");
  EXPECT_EQ(error_of_body("return self.z"), at + "__torch__.M has no attribute 'z'");
  EXPECT_EQ(error_of_body("return (self).g(x)"), at + "__torch__.M has no method 'g'");
  EXPECT_EQ(error_of_body("return torch.no_such(x)"),
            at + "there is no operator 'torch.no_such' (metaprof ops lists those that there are)");
  EXPECT_EQ(error_of_body("return torch.relu(x, 1)"),
            at + "no overload of torch.relu takes (a tensor, an integer)");
  EXPECT_EQ(error_of_body("return torch.add(1, None)"), at + "expected a number, got None");
  EXPECT_EQ(error_of_body("return torch.floordiv(1, 0)"), at + "a division by zero");
  EXPECT_EQ(error_of_body("return [1][1]"), at + "element 1 of a list of 1");
  EXPECT_EQ(error_of_body("return torch.mul(9223372036854775807, 2)"), at + "a number of more than 64 bits");
  EXPECT_EQ(error_of_body("return torch.mul([0], 9223372036854775807)"),
            at + "a list of more than 1000000 elements");
  EXPECT_EQ(error_of_body("a, b = (1, 2, 3)\nreturn x"), at + "a tuple cannot be taken apart into 2 values");
  EXPECT_EQ(error_of_body("return (self).forward(x)"), at + "more than 200 calls inside each other");
  EXPECT_EQ(error_of_body("while True:\n  pass\nreturn x"),
            "FILE: __torch__.py:10: more than 1000000 statements run: does a loop not end?");
  EXPECT_EQ(error_of_body("return 1"), "FILE: forward returns no tensor");
  EXPECT_EQ(error_of_body("return torch.relu(x"),
            "FILE: __torch__.py:10: expected ','; is it an archive of torch.jit.save? Save it again");
  EXPECT_EQ(error_of_body("return \"x"), "FILE: __torch__.py:9: a text has no end");
  EXPECT_EQ(error_of_body("return " + std::string(300, '[')),
            "FILE: __torch__.py:9: too much stands inside each other; is it an archive of torch.jit.save? "
            "Save it again");
}

// As deep as a loop makes them.
TEST(ScriptCode, ListsInLists) {
  const std::string nest = "k = 0\na = [x]\nwhile torch.lt(k, 100000):\n  k = torch.add(k, 1)\n  a = [a]\n";
  EXPECT_EQ(calls_of(nest + "return torch.relu(x)"), "relu:0");
  EXPECT_EQ(error_of_body(nest + "b = torch.str(a)\nreturn x"),
            "FILE: __torch__.py:14: lists stand in each other more than 200 deep");
  EXPECT_EQ(error_of_body(nest + "b = torch.eq(a, [a])\nreturn x"),
            "FILE: __torch__.py:14: lists stand in each other more than 200 deep");
  EXPECT_EQ(error_of_body(nest + "return a"),
            "FILE: forward returns collections that stand in each other more than 200 deep");
  EXPECT_EQ(calls_of("a = [1]\nb = torch.append(a, 2)\nreturn torch.relu(x)"), "relu:0");
}

TEST(ScriptCode, MessagesAboutInputs) {
  const std::string bytes = archive_of(module_with("return x"));
  EXPECT_EQ(error_of(bytes, {}), "FILE: forward takes x; say what x is: --input x=f32[8,3,224,224]");
  const std::string error = error_of(bytes, {{"x", kX}, {"y", kX}});
  EXPECT_TRUE(error.ends_with("forward takes no 'y'; it takes x")) << error;
}

TEST(ScriptCode, MessagesAboutInputsOnTheCommandLine) {
  const auto error = [](const std::vector<std::string>& inputs) {
    try {
      (void)script_inputs(inputs);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string expected = " is no NAME=TYPE[SHAPE] and no NAME=NUMBER, as x=f32[8,3,224,224] or n=4";
  for (const std::string input : {"x", "=f32[2]", "x=f32[2,]3", "x=f32[-1]", "x=f32[a]", "x=one", "x="})
    EXPECT_EQ(error({input}), fmt::format("--input: '{}'{}", input, expected));
  EXPECT_EQ(error({"x=q[1]"}),
            "--input: 'x=q[1]': there is no type 'q'; there are f32, f16, bf16, i64, b8 …");
  EXPECT_EQ(error({"x=1", "x=2"}), "--input: x is given twice");
  const auto inputs = script_inputs({"x=bf16[2, 4]", "s=f32[]", "n=4", "a=-0.5", "b=true"});
  EXPECT_EQ(inputs.at("x").dtype, DType::bf16);
  EXPECT_EQ(inputs.at("x").sizes, (Sizes{2, 4}));
  EXPECT_TRUE(inputs.at("s").sizes.empty());
  EXPECT_EQ(inputs.at("n").number.integer(), 4);
  EXPECT_EQ(inputs.at("a").number.real(), -0.5);
  EXPECT_TRUE(inputs.at("b").number.boolean());
  const auto batched = script_inputs({"x=f32[2,3]", "y=i64[2]", "z=f32[5]"}, 7);
  EXPECT_EQ(batched.at("x").sizes, (Sizes{7, 3}));
  EXPECT_EQ(batched.at("y").sizes, (Sizes{7}));
  EXPECT_EQ(batched.at("z").sizes, (Sizes{5}));
}

TEST(ScriptCode, MessagesAboutAttributes) {
  const std::string code = module_with("return x");
  EXPECT_EQ(error_of(archive_of(
                code, attribute("p", object_of("__torch__.torch.classes.quantized", "Packed", "")))),
            "FILE: p is torch.classes.quantized.Packed, a class of a C++ library, as quantized modules have; "
            "such models "
            "are not read");
  EXPECT_EQ(error_of(archive_of(code, attribute("p", object_of("__torch__", "Other", "")))),
            "FILE: the code has no class __torch__.Other");
  EXPECT_EQ(error_of(archive_of(code, attribute("p", global("os", "system") + pickled_text("ls") + "\x85R"))),
            "FILE: m/data.pkl: expected a module, a tensor or a list, got a call; is it what torch.jit.save "
            "wrote?");
  EXPECT_EQ(
      error_of(archive_of(code, attribute("w", tensor_of("K\4\x85"s, "K\1K\1\x86"s)))),
      "FILE: m/data.pkl: expected sizes that a tensor has, got a tuple; is it what torch.jit.save wrote?");
}

}  // namespace
}  // namespace metaprof
