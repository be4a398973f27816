// Numbers of a view for other sizes of the inputs than the export's.

#include "program/resizing.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

struct ViewCase {
  const char* what;
  std::vector<Resizing::Change> changes;
  Sizes exported, target, actual, expected;  // expected: empty: no numbers fit
};

class ResizedView : public testing::TestWithParam<ViewCase> {};

TEST_P(ResizedView, FollowsTheFactors) {
  const ViewCase& c = GetParam();
  const auto sizes = resized_view({.changes = c.changes, .inputs = {}}, c.exported, c.target, c.actual);
  EXPECT_EQ(sizes.value_or(Sizes{}), c.expected) << c.what;
}

INSTANTIATE_TEST_SUITE_P(
    Program, ResizedView,
    testing::Values(
        ViewCase{"a dimension that stays whole", {{4, 8}}, {4, 512}, {4, 512}, {8, 512}, {8, 512}},
        ViewCase{
            "dimensions that are merged", {{4, 8}}, {4, 512, 768}, {2048, 768}, {8, 512, 768}, {4096, 768}},
        ViewCase{"… and taken apart again", {{4, 8}}, {2048, 768}, {4, 512, 768}, {4096, 768}, {8, 512, 768}},
        ViewCase{"two sizes change",
                 {{4, 8}, {512, 1024}},
                 {2048, 768},
                 {4, 512, 768},
                 {8192, 768},
                 {8, 1024, 768}},
        ViewCase{"… with the same product",
                 {{4, 8}, {512, 256}},
                 {2048, 768},
                 {4, 512, 768},
                 {2048, 768},
                 {8, 256, 768}},
        ViewCase{"heads that are a multiple of the batch",
                 {{4, 2}},
                 {4, 512, 768},
                 {4, 512, 12, 64},
                 {2, 512, 768},
                 {2, 512, 12, 64}},
        // 16 · 192 viewed as 192 · 16: the first 16 is in the 192, the last 16 was a part of the other 192.
        ViewCase{"batch times heads, a head as wide as the batch",
                 {{16, 3}},
                 {64, 16, 192},
                 {64, 192, 16},
                 {64, 3, 192},
                 {64, 36, 16}},
        ViewCase{
            "windows", {{16, 2}}, {16, 8, 8, 7, 7, 96}, {1024, 49, 96}, {2, 8, 8, 7, 7, 96}, {128, 49, 96}},
        ViewCase{"a batch of 1 grows", {{1, 3}}, {1, 64, 768}, {64, 768}, {3, 64, 768}, {192, 768}},
        ViewCase{
            "… and comes out of the rows again", {{1, 3}}, {64, 768}, {1, 64, 768}, {192, 768}, {3, 64, 768}},
        ViewCase{"a scalar's dimension", {{4, 8}}, {4}, {4, 1}, {8}, {8, 1}},
        ViewCase{"dimensions that cut across each other", {{6, 12}}, {6, 4}, {8, 3}, {12, 4}, {}},
        ViewCase{"a part that no change explains", {{4, 8}}, {6, 5}, {2, 3, 5}, {7, 5}, {}}));

TEST(ResizedExpansion, NewDimensionsFollowInputsOldOnesTheTensor) {
  const Resizing resizing{.changes = {{4, 8}}, .inputs = {}};
  EXPECT_EQ(resized_expansion(resizing, Sizes{1, 512}, Sizes{4, 512}, Sizes{1, 512}), (Sizes{8, 512}));
  EXPECT_EQ(resized_expansion(resizing, Sizes{4, 1}, Sizes{4, 3}, Sizes{8, 1}), (Sizes{8, 3}));
  EXPECT_EQ(resized_expansion(resizing, Sizes{768}, Sizes{4, 1, 768}, Sizes{768}), (Sizes{8, 1, 768}));
}

TEST(ResizedNumber, OneSaysNothing) {
  const Resizing resizing{.changes = {{1, 8}, {512, 64}}, .inputs = {}};
  EXPECT_EQ(resized_number(resizing, 512), 64);
  EXPECT_EQ(resized_number(resizing, 1), 1);
  EXPECT_EQ(resized_number(resizing, 7), 7);
}

// A captured program, of which another tensor of the host comes before the batch of 2: a table with as many rows as is asked for below.
Program captured(const std::string& calls) {
  return parse_program(
      "metaprof program 1\ncaptured torch 2.11.0\n%table: f32[16,8] on cpu = step::tensor()\n" + calls,
      "step.mp");
}

const TensorFacts& facts(const Program& program, size_t value) { return *program.graph.values[value].tensor; }

TEST(SetBatch, IsThatOfTheInputsOfModules) {
  Program program = captured(
      "%x: i64[2,5] on cpu = step::tensor()\n%target: i64[2] on cpu = step::tensor()\n"
      "%y: i64[2,5] = aten::_to_copy(%x)\nstep::name(\"input\", \"\", %y)\n");
  set_batch(program, 16);
  EXPECT_EQ(facts(program, 0).sizes, (Sizes{16, 8}));
  EXPECT_EQ(facts(program, 1).sizes, (Sizes{16, 5}));
  EXPECT_EQ(facts(program, 2).sizes, (Sizes{16}));
  EXPECT_EQ(program.resizing.changes, (std::vector<Resizing::Change>{{2, 16}}));
}

TEST(SetBatch, FollowsWhatTheProgramTakesOfATensorOfTheHost) {
  Program program = captured(
      "%x: i64[2,5] on cpu = step::tensor()\n%y: i64[2,4] = aten::slice.Tensor(%x, 1, 0, 4)\n"
      "step::name(\"input\", \"\", %y)\n");
  set_batch(program, 16);
  EXPECT_EQ(facts(program, 1).sizes, (Sizes{16, 5}));
}

TEST(SetBatch, OfATensorThatIsMadeOnTheDeviceStandsInItsCall) {
  Program program = captured("%x: f32[2,5] = aten::randint(10, [2, 5])\nstep::name(\"input\", \"\", %x)\n");
  set_batch(program, 16);
  EXPECT_EQ(program.graph.nodes[1].operands[1].constant.integers(), (Sizes{16, 5}));
}

TEST(SetBatch, IsRefusedWhereNoInputWouldFollow) {
  Program program = captured(
      "%w: f32[4] = step::tensor()\n%x: f32[2,2] = aten::outer(%w, %w)\nstep::name(\"input\", \"\", %x)\n");
  try {
    set_batch(program, 16);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "step.mp: --batch: none of the inputs of its modules follows from a tensor that the program "
                 "brings from "
                 "the host or makes with a size");
  }
}

}  // namespace
}  // namespace metaprof
