// Where a program with a recurrent network is left to Python: calls named by the functions that make them, outermost
// first, and where the compiler goes on.

#include "graph/aot/graph_break.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "meta/program/text.h"

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

GraphBreak break_of(const std::vector<Called>& calls, FrameworkVersion version = {}) {
  std::string text = kBegin, nodes;
  int last = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string stack = stack_text(calls[i].lines, last);
    text += stack;
    nodes += fmt::format("%v{}: f32[2,3] = {}(%v{}){}\n", i + 1, calls[i].op, i,
                         stack.empty() ? "" : fmt::format(" at s{}", last));
  }
  text += nodes;
  return graph_break(parse_program(text, "case"), framework_of(version));
}

const Called kLstm = {"aten::lstm.input", "loss_calls_net net_calls_rnn rnn"};
const Called kHead = {"aten::relu", "loss_calls_net net_calls_head linear"};
const Called kLoss = {"aten::tanh", "loss_goes_on"};

TEST(GraphBreak, NoneWithoutARecurrentNetwork) {
  const GraphBreak found = break_of({kHead, kLoss});
  EXPECT_EQ(found.resumes, 0u);
  EXPECT_EQ(found.not_modelled, "");
}

TEST(GraphBreak, TheFunctionThatUsesOneIsLeftAsAWhole) {
  const GraphBreak found = break_of({kLstm, kHead, kLoss});
  EXPECT_EQ(found.resumes, 2u);  // the loss
  EXPECT_EQ(found.not_modelled, "");
}

TEST(GraphBreak, OfAContainerTheFunctionThatCallsItGoesOn) {
  const GraphBreak found =
      break_of({{"aten::gru.input", "loss_calls_net net_calls_rnn container rnn"}, kHead});
  EXPECT_EQ(found.resumes, 1u);
  EXPECT_EQ(found.not_modelled, "");
}

TEST(GraphBreak, WhatItPassesOnIsSplitOff) {
  std::string text = kBegin;
  text += "%v1: f32[2,3] = aten::relu(%v0)\n";
  text += "%v2: f32[2,3] = aten::add.Tensor(%v1, %v0)\n";
  const Program program = parse_program(text, "case");
  const std::vector<ValueId> values = handed_on(program, 1);
  ASSERT_EQ(values.size(), 1u);  // %v1; %v0 is an input
  EXPECT_EQ(part_before(program, 1, values).graph.nodes.size(), 1u);
}

// Each says why in `not_modelled`, behind what the network is.
TEST(GraphBreak, SaysWhereTheProgramIsCutInAnotherWay) {
  const std::string network =
      "a recurrent network is in it (aten::lstm.input), which the compiler leaves to Python: ";
  const auto why = [&](const std::vector<Called>& calls, FrameworkVersion version = {}) {
    const std::string text = break_of(calls, version).not_modelled;
    EXPECT_TRUE(text.starts_with(network)) << text;
    return text.substr(std::min(network.size(), text.size()));
  };
  EXPECT_EQ(why({{"aten::lstm.input", ""}, kLoss}), "where it is called is not known");
  EXPECT_EQ(why({{"aten::lstm.input", "loss_calls_net container net_calls_rnn rnn"}, kLoss}),
            "a container of modules calls the one that uses it");
  EXPECT_EQ(why({kLoss, kLstm, kHead}), "what runs before it is compiled, too");
  EXPECT_EQ(why({kLstm, {"aten::relu", "loss_calls_net net_calls_block block"}, kLoss}),
            "what runs eagerly calls modules of the user's, which are compiled by themselves");
  EXPECT_EQ(why({kLstm, {"aten::lstm.input", "loss_goes_on rnn"}}), "there are several");
  EXPECT_EQ(why({{"aten::lstm.input", "loss_calls_net net_calls_rnn container rnn"}, kHead, kLoss}),
            "several functions go on behind it, each compiled by itself");
  EXPECT_EQ(why({kLstm, kLoss}, {.major = 2, .minor = 15, .patch = 0}),
            "what is around the call is compiled in pieces");
}

}  // namespace
}  // namespace metaprof
