// Where a program with a recurrent network is left to Python: calls named by the functions that make them, outermost
// first, and the parts that are compiled.

#include "step/compiled/aot/graph_break.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "program/text/text.h"

namespace metaprof {
namespace {

// A function's file tells whose it is.
constexpr const char* kBegin =
    "metaprof program 1\n"
    "input x = %v0: f32[2,3]\n"
    "file f1 = \"net.py\"\n"
    "file f2 = \"torch/nn/modules/rnn.py\"\n"
    "file f3 = \"torch/nn/modules/linear.py\"\n"
    "file f4 = \"torch/nn/modules/container.py\"\n"
    "line l1 = f1 1 forward \"y = self.net(x)\"\n"
    "line l2 = f1 2 forward \"return y.mean()\"\n"
    "line l3 = f1 11 forward \"h, _ = self.rnn(x)\"\n"
    "line l4 = f1 12 forward \"return self.head(h)\"\n"
    "line l5 = f1 13 forward \"return self.block(h)\"\n"
    "line l6 = f1 21 forward \"return x + 1\"\n"
    "line l7 = f2 5 forward \"_VF.lstm(x)\"\n"
    "line l8 = f3 6 forward \"F.linear(x)\"\n"
    "line l9 = f4 7 forward \"x = module(x)\"\n";

// The lines above, in their order.
constexpr std::string_view kLines[] = {"loss_calls_net",  "loss_goes_on", "net_calls_rnn", "net_calls_head",
                                       "net_calls_block", "block",        "rnn",           "linear",
                                       "container"};

struct Called {
  const char* op;
  const char* lines;
};

// The stack of these lines, which are separated by blanks; its number is `last` then.
std::string stack_text(const std::string& lines, int& last) {
  std::string text;
  std::istringstream words(lines);
  bool inside = false;
  for (std::string name; words >> name; inside = true, ++last) {
    const std::string line = fmt::format("l{}", std::ranges::find(kLines, name) - std::begin(kLines) + 1);
    text += inside ? fmt::format("stack s{} = {} in s{}\n", last + 1, line, last)
                   : fmt::format("stack s{} = {}\n", last + 1, line);
  }
  return text;
}

// What becomes of each call: "c" is compiled, "p" left to Python; a blank is between parts.
std::string parts_of(const std::vector<Called>& calls,
                     FrameworkVersion version = {.major = 2, .minor = 15, .patch = 0}) {
  std::string text = kBegin, nodes;
  int last = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string stack = stack_text(calls[i].lines, last);
    text += stack;
    nodes += fmt::format("%v{}: f32[2,3] = {}(%v{}){}\n", i + 1, calls[i].op, i,
                         stack.empty() ? "" : fmt::format(" at s{}", last));
  }
  std::string shown;
  for (const ProgramPart& part : compiled_parts(parse_program(text + nodes, "case"), framework_of(version))) {
    if (!shown.empty()) shown += ' ';
    shown += std::string(part.end - part.begin, part.compiled ? 'c' : 'p');
  }
  return shown;
}

constexpr FrameworkVersion kEarlier = {.major = 2, .minor = 11, .patch = 0};

const Called kLstm = {"aten::lstm.input", "loss_calls_net net_calls_rnn rnn"};
const Called kHead = {"aten::relu", "loss_calls_net net_calls_head linear"};
const Called kLoss = {"aten::tanh", "loss_goes_on"};

TEST(GraphBreak, NoneWithoutARecurrentNetwork) { EXPECT_EQ(parts_of({kHead, kLoss}), "cc"); }

// What is before the call and behind it in the function that makes it, and behind that in the function that called this one.
TEST(GraphBreak, FunctionsAreCutAroundTheCall) {
  EXPECT_EQ(parts_of({kHead, kLstm, kHead, kLoss}), "c p c c");
  EXPECT_EQ(parts_of({kLoss, kLstm, kLstm, kHead}), "c pp c");
  EXPECT_EQ(parts_of({{"aten::gru.input", "loss_calls_net net_calls_rnn container rnn"}, kHead}), "p c");
}

TEST(GraphBreak, BeforeTwoFifteenTheFunctionThatUsesOneIsLeftAsAWhole) {
  EXPECT_EQ(parts_of({kLstm, kHead, kLoss}, kEarlier), "pp c");
  EXPECT_EQ(parts_of({kHead, kLstm, kHead, kLoss}, kEarlier), "ppp c");  // one call before it
  EXPECT_EQ(parts_of({kHead, kHead, kLstm, kHead, kLoss}, kEarlier), "cc pp c");
}

TEST(GraphBreak, OfAContainerTheFunctionThatCallsItGoesOn) {
  EXPECT_EQ(parts_of({{"aten::gru.input", "loss_calls_net net_calls_rnn container rnn"}, kHead}, kEarlier),
            "p c");
}

// Their own code is compiled where Python calls them.
TEST(GraphBreak, FunctionsOfTheUsersThatAreCalledFromWhatIsLeftAreCompiled) {
  EXPECT_EQ(parts_of({kLstm, {"aten::relu", "loss_calls_net net_calls_block block"}, kLoss}, kEarlier),
            "p c c");
}

TEST(GraphBreak, AllIsLeftWhereSourceLinesAreNotKnown) {
  EXPECT_EQ(parts_of({{"aten::lstm.input", ""}, kLoss}), "pp");
}

TEST(GraphBreak, PartsHandOnWhatOthersTake) {
  std::string text = kBegin;
  text += "%v1: f32[2,3] = aten::relu(%v0)\n";
  text += "%v2: f32[2,3] = aten::add.Tensor(%v1, %v0)\n";
  const Program program = parse_program(text, "case");
  EXPECT_EQ(handed_on(program, 0, 1).size(), 1u);  // %v1; %v0 is an input
  EXPECT_EQ(handed_to(program, 1, 2), handed_on(program, 0, 1));
  EXPECT_EQ(
      part_of(program, {.begin = 0, .end = 1, .compiled = true, .code = ""}, {}, {}, handed_on(program, 0, 1))
          .graph.nodes.size(),
      1u);
}

}  // namespace
}  // namespace metaprof
