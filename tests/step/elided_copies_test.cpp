// Calls of contiguous that an export lacks, and views that may copy.

#include "program/source/elided_copies.h"

#include <gtest/gtest.h>

#include <sstream>

#include "program/source/contiguous_calls.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

// What a line says: "of > then, within[argument]", "=" for what is bound or returned.
std::string text_of(const std::vector<ContiguousCall>& calls) {
  std::ostringstream text;
  for (const ContiguousCall& call : calls) {
    if (call.of) text << call.of->name << call.of->number;
    if (call.then) text << ">" << call.then->name << call.then->number;
    if (call.within)
      text << " in " << call.within->name << call.within->number << "[" << call.argument << "]";
    if (call.is_whole) text << "=";
    if (call.format == MemoryFormat::channels_last) text << " last";
    text << ";";
  }
  return text.str();
}

TEST(ContiguousCalls, AreFoundWithWhatStandsAroundThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"y = x.contiguous()", "=;"},
      {"y = x.contiguous().view(b, -1)", ">view0;"},
      {"y = x.transpose(1, 2).contiguous().view(b, t, c)", "transpose0>view0;"},
      {"return self.conv(x).contiguous()  # .contiguous()", "conv0=;"},
      {"y = x[:, :n].contiguous()", "=;"},
      {"y = 2 * x.permute(0, 2, 1).contiguous()", "permute0;"},
      {"y = torch.bmm(a, b.contiguous())", " in bmm0[1];"},
      {"y = f(g(a, (1, 2)).contiguous(), h(b)).view(-1)", "g0 in f0[0];"},
      {"y = f(2 * a.contiguous())", ";"},
      {"q, k = q.contiguous().view(2, -1), k.contiguous().view(2, -1)", ">view0;>view1;"},
      {"x += y.t().t().contiguous()", "t1;"},
      {"x = y.contiguous(memory_format=torch.channels_last)", "= last;"},
      {"s = 'x.contiguous()'", ""},
      {"y = x.contiguous(", ""},
      {"y = (a.exp().contiguous()", "exp0;"},
  };
  for (const auto& [code, expected] : cases) EXPECT_EQ(text_of(contiguous_calls_in(code)), expected) << code;
}

TEST(ContiguousCalls, MethodsAreCalledOnResultsAndVariables) {
  EXPECT_EQ(receiver_of("y = x.transpose(0, 1).view(-1)", {"view", 0}).call, "transpose");
  EXPECT_EQ(receiver_of("y = self.x.view(-1) + z.view(1)", {"view", 0}).variable, "self.x");
  EXPECT_EQ(receiver_of("y = self.x.view(-1) + z.view(1)", {"view", 1}).variable, "z");
  EXPECT_EQ(receiver_of("view(x)", {"view", 0}).variable, "");
}

// A program of a `forward`, whose lines are numbered from 1 on, "at s1" and so on.
Program program_of(const std::vector<std::string>& lines, const std::string& calls) {
  std::string text =
      "metaprof program 1\ninput x = %x: f32[4,5,6]\ninput y = %y: f32[4,5,6]\nscope m1 = \"\"\n"
      "scope m2 = conv in m1\nfile f1 = \"m.py\"\n";
  for (size_t i = 1; i <= lines.size(); ++i) {
    const std::string number = std::to_string(i);
    text += "line l" + number + " = f1 " + number + " forward \"" + lines[i - 1] + "\"\nstack s" + number +
            " = l" + number + "\n";
  }
  return parse_program(text + "line l9 = f1 90 forward \"return F.conv1d(x)\"\nstack s9 = l9 in s1\n" + calls,
                       "m.mp");
}

std::string calls_of(const Program& program) {
  std::istringstream lines(to_text(program));
  std::string calls;
  for (std::string line; std::getline(lines, line);)
    if (line.find("= aten::") != std::string::npos) calls += line + "\n";
  return calls;
}

struct Case {
  const char* name;
  std::vector<std::string> lines;
  const char *exported, *restored;
};

const Case kCases[] = {
    {"BeforeAMethod",
     {"z = x.transpose(1, 2).contiguous().view(4, 30)"},
     "%t: f32[4,6,5] = aten::transpose.int(%x, 1, 2) in m1 at s1\n"
     "%z: f32[4,30] = aten::view(%t, [4,30]) in m1 at s1\n",
     "%t: f32[4,6,5] = aten::transpose.int(%x, 1, 2) in m1 at s1\n"
     "%t_contiguous_4: f32[4,6,5] = aten::contiguous(self=%t) in m1 at s1\n"
     "%z: f32[4,30] = aten::view(%t_contiguous_4, [4, 30]) in m1 at s1\n"},
    {"WhatIsBound",
     {"z = self.conv(x).contiguous()", "z = z + z"},
     "%c: f32[4,5,6] = aten::relu(%x) in m2 at s9\n"
     "%z: f32[4,5,6] = aten::add.Tensor(%c, %c) in m1 at s2\n",
     "%c: f32[4,5,6] = aten::relu(%x) in m2 at s2\n"  // of forward and conv1d; numbered in the order of printing
     "%c_contiguous_4: f32[4,5,6] = aten::contiguous(self=%c) in m1 at s1\n"
     "%z: f32[4,5,6] = aten::add.Tensor(%c_contiguous_4, %c_contiguous_4) in m1 at s3\n"},
    {"AnArgument",
     {"z = torch.bmm(x, y.contiguous())"},
     "%z: f32[4,5,6] = aten::bmm(%x, %y) in m1 at s1\n",
     "%y_contiguous_3: f32[4,5,6] = aten::contiguous(self=%y) in m1 at s1\n"
     "%z: f32[4,5,6] = aten::bmm(%x, %y_contiguous_3) in m1 at s1\n"},
    {"WithinAnExpression",
     {"z = x + y.transpose(1, 2).contiguous()"},
     "%t: f32[4,6,5] = aten::transpose.int(%y, 1, 2) in m1 at s1\n"
     "%z: f32[4,5,6] = aten::add.Tensor(%x, %t) in m1 at s1\n",
     "%t: f32[4,6,5] = aten::transpose.int(%y, 1, 2) in m1 at s1\n"
     "%t_contiguous_4: f32[4,6,5] = aten::contiguous(self=%t) in m1 at s1\n"
     "%z: f32[4,5,6] = aten::add.Tensor(%x, %t_contiguous_4) in m1 at s1\n"},
    {"InEachRoundOfAComprehension",
     {"a, b = (z.contiguous().view(-1) for z in (x, y))"},
     "%a: f32[120] = aten::view(%x, [-1]) in m1 at s1\n%b: f32[120] = aten::view(%y, [-1]) in m1 at s1\n",
     "%x_contiguous_4: f32[4,5,6] = aten::contiguous(self=%x) in m1 at s1\n"
     "%a: f32[120] = aten::view(%x_contiguous_4, [-1]) in m1 at s1\n"
     "%y_contiguous_5: f32[4,5,6] = aten::contiguous(self=%y) in m1 at s1\n"
     "%b: f32[120] = aten::view(%y_contiguous_5, [-1]) in m1 at s1\n"},
};

class RestoredCopies : public testing::TestWithParam<Case> {};

TEST_P(RestoredCopies, StandWhereTheLineCallsContiguous) {
  Program program = program_of(GetParam().lines, GetParam().exported);
  restore_contiguous(program);
  EXPECT_EQ(calls_of(program), GetParam().restored);
}

INSTANTIATE_TEST_SUITE_P(Calls, RestoredCopies, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Calls that are there, tensors that were not contiguous while exporting, and lines whose calls are not those of the text.
TEST(ElidedCopies, AreRestoredOnce) {
  for (const auto& [line, calls] : std::vector<std::pair<std::string, std::string>>{
           {"z = x.contiguous().view(-1)",
            "%c: f32[4,5,6] = aten::contiguous(%x) in m1 at s1\n%z: f32[120] = aten::view(%c, [-1]) in m1 at "
            "s1\n"},
           {"z = x.transpose(1, 2).contiguous()",
            "%z: f32[4,6,5](30,1,6) = aten::transpose.int(%x, 1, 2) in m1 at s1\n"},
           {"z = x.contiguous().view(-1) if c else y.view(-1)",
            "%z: f32[120] = aten::view(%y, [-1]) in m1 at s1\n"},
           {"z = x.contiguous().view(-1)", "%z: f32[4,5,6] = aten::relu(%x) in m1 at s1\n"},
       }) {
    Program program = program_of({line}, calls);
    const std::string before = to_text(program);
    restore_contiguous(program);
    EXPECT_EQ(to_text(program), before) << line;
  }
}

// The view of the last call.
bool copies_to_view(const std::vector<std::string>& lines, const std::string& calls) {
  Program program = program_of(lines, calls);
  find_copies_to_view(program, program.graph, FrameFinder(program).frames_of(program.graph));
  return program.graph.nodes.back().copies_to_view;
}

TEST(ElidedCopies, MayStandBeforeAViewUnlessTheSourceShowsWhatIsViewed) {
  const std::string made = "%t: f32[4,6,5] = aten::transpose.int(%x, 1, 2) in m1 at s1\n";
  const std::string strided = "%t: f32[4,6,5](30,1,6) = aten::transpose.int(%x, 1, 2) in m1 at s1\n";
  const auto view_at = [](const std::string& stack) {
    return "%z: f32[4,30] = aten::view(%t, [4,30]) in m1 at " + stack + "\n";
  };
  EXPECT_TRUE(copies_to_view({"z = merged(x)"}, made + view_at("s1")));
  EXPECT_FALSE(copies_to_view({"z = merged(x)"}, strided + view_at("s1"))) << "contiguous would have copied";
  EXPECT_FALSE(copies_to_view({"z = x.transpose(1, 2).view(4, -1)"}, made + view_at("s1")));
  EXPECT_FALSE(copies_to_view({"z = x.transpose(1, 2)", "z = z.view(4, -1)"}, made + view_at("s2")));
  EXPECT_TRUE(copies_to_view({"z = x.transpose(1, 2)", "z = z.contiguous()", "z = z.view(4, -1)"},
                             made + view_at("s3")));
  EXPECT_TRUE(copies_to_view({"z = x.transpose(1, 2)", "z = w.view(4, -1)"}, made + view_at("s2")));
}

}  // namespace
}  // namespace metaprof
