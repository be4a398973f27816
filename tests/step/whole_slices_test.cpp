// Slices of whole dimensions, which versions of the framework make or pass over.

#include "program/source/whole_slices.h"

#include <gtest/gtest.h>

#include <sstream>

#include "program/source/subscripts.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

using enum SubscriptItem;

TEST(Subscripts, AreReadInTheOrderOfTheirClosingBrackets) {
  const std::pair<const char*, std::vector<Subscript>> cases[] = {
      {"y = x[:, 0]", {{everything, number}}},
      {"x[0:, ::1, 1:, :n, ::2]", {{everything, everything, range, range, range}}},
      {"z[..., None, :]", {{ellipsis, new_axis, everything}}},
      {"x[a[:, i], -1]", {{everything, expression}, {expression, number}}},
      {"f(x)[:][0,]", {{everything}, {number}}},
      {"x[lambda: 1]", {{range}}},
      {"[a, b] + {1: 2}[:]", {}},
      {"d['a:b'][:]  # see y[:]", {{expression}, {everything}}},
      {"x[(a, b), :]", {{expression, everything}}},
      {"x[:,", {}},
      {"x]", {}},
  };
  for (const auto& [code, expected] : cases) EXPECT_EQ(subscripts_in(code), expected) << code;
}

// A program whose calls all come from one line.
Program program_of(const std::string& code, const std::string& calls) {
  return parse_program(
      "metaprof program 1\ninput x = %x: f32[4,5,6]\ninput i = %i: i64[2]\nfile f1 = \"m.py\"\n"
      "line l1 = f1 7 forward \"" +
          code + "\"\nstack s1 = l1\n" + calls,
      "m.mp");
}

// The lines of calls.
std::string calls_of(const Program& program) {
  std::istringstream lines(to_text(program));
  std::string calls;
  for (std::string line; std::getline(lines, line);)
    if (line.find("= aten::") != std::string::npos) calls += line + "\n";
  return calls;
}

struct Case {
  const char *code, *later, *earlier;  // calls as later versions make them, and as 2.8 does
};

const Case kCases[] = {
    {"y = x[:, 0]",  //
     "%y: f32[4,6] = aten::select.int(%x, 1, 0) at s1 drop %x\n",
     "%x_whole_3: f32[4,5,6] = aten::slice.Tensor(self=%x, dim=0, start=0, end=9223372036854775807) at s1\n"
     "%y: f32[4,6] = aten::select.int(%x_whole_3, 1, 0) at s1 drop %x_whole_3, %x\n"},
    {"y = x[0, :]",  //
     "%y: f32[5,6] = aten::select.int(%x, 0, 0) at s1 drop %x\n",
     "%y_whole_3: f32[5,6] = aten::select.int(%x, 0, 0) at s1\n"
     "%y: f32[5,6] = aten::slice.Tensor(self=%y_whole_3, dim=0, start=0, end=9223372036854775807) at s1 "
     "drop %y_whole_3, %x\n"},
    {"y = x[:, rows, :]",  // rows = slice(0, None)
     "%y: f32[4,5,6] = aten::alias(%x) at s1 drop %x\n",
     "%x_whole_3: f32[4,5,6] = aten::slice.Tensor(self=%x, dim=0, start=0, end=9223372036854775807) at s1\n"
     "%x_whole_3_whole_4: f32[4,5,6] = aten::slice.Tensor(self=%x_whole_3, dim=1, start=0, "
     "end=9223372036854775807) at s1 drop %x_whole_3\n"
     "%y: f32[4,5,6] = aten::slice.Tensor(self=%x_whole_3_whole_4, dim=2, start=0, end=9223372036854775807) "
     "at s1 drop %x_whole_3_whole_4, %x\n"},
    {"y = x[..., :]",  //
     "%y: f32[4,5,6] = aten::alias(%x) at s1\n",
     "%y: f32[4,5,6] = aten::slice.Tensor(self=%x, dim=2, start=0, end=9223372036854775807) at s1\n"},
    {"y = x[:, i]",  //
     "%y: f32[4,2,6] = aten::index.Tensor(%x, [None, %i]) at s1\n",
     "%x_whole_3: f32[4,5,6] = aten::slice.Tensor(self=%x, dim=0, start=0, end=9223372036854775807) at s1\n"
     "%y: f32[4,2,6] = aten::index.Tensor(%x_whole_3, [None, %i]) at s1 drop %x_whole_3\n"},
    {"y = x[:, None, 1:]",  //
     "%z: f32[4,1,5,6] = aten::unsqueeze(%x, 1) at s1 drop %x\n"
     "%y: f32[4,1,4,6] = aten::slice.Tensor(%z, 2, 1, 5) at s1 drop %z\n",
     "%x_whole_4: f32[4,5,6] = aten::slice.Tensor(self=%x, dim=0, start=0, end=9223372036854775807) at s1\n"
     "%z: f32[4,1,5,6] = aten::unsqueeze(%x_whole_4, 1) at s1 drop %x, %x_whole_4\n"
     "%y: f32[4,1,4,6] = aten::slice.Tensor(%z, 2, 1, 5) at s1 drop %z\n"},
};

TEST(WholeSlices, AreRestoredFromTheSource) {
  for (const Case& one : kCases) {
    const Program later = program_of(one.code, one.later);
    EXPECT_EQ(calls_of(with_whole_slices(later)), one.earlier) << one.code;
    EXPECT_FALSE(has_whole_slices(later.graph)) << one.code;
    EXPECT_TRUE(has_whole_slices(with_whole_slices(later).graph)) << one.code;
  }
}

TEST(WholeSlices, AreRestoredOnce) {
  for (const Case& one : kCases) {
    const Program earlier = program_of(one.code, one.earlier);
    EXPECT_EQ(calls_of(with_whole_slices(earlier)), one.earlier) << one.code;
  }
}

TEST(WholeSlices, WhereNoneIsMissingNothingChanges) {
  const std::pair<const char*, const char*> cases[] = {
      {"y = x[0]", "%y: f32[5,6] = aten::select.int(%x, 0, 0) at s1\n"},
      {"y = x[1:]", "%y: f32[3,5,6] = aten::slice.Tensor(%x, 0, 1, 4) at s1\n"},
      {"y = x[:n]", "%y: f32[4,5,6] = aten::alias(%x) at s1\n"},  // n is 4: passed over by every version
      {"y = x[:, 0]", "%y: f32[5,6] = aten::select.int(%x, 0, 0) at s1\n"},  // of another subscript
      {"y = x.select(1, 0)", "%y: f32[4,6] = aten::select.int(%x, 1, 0) at s1\n"},
      {"y = x[:] + x[0]", "%y: f32[4,5,6] = aten::add.Tensor(%x, %x) at s1\n"},
  };
  for (const auto& [code, calls] : cases)
    EXPECT_EQ(calls_of(with_whole_slices(program_of(code, calls))), calls) << code;
}

TEST(WholeSlices, BecomeAliases) {
  const Program earlier =
      program_of("y = x[:, 1:]",
                 "%z: f32[4,5,6] = aten::slice.Tensor(%x, 0, 0, 9223372036854775807) at s1 drop %x\n"
                 "%y: f32[4,4,6] = aten::slice.Tensor(%z, 1, 1, 9223372036854775807) at s1 drop %z\n");
  EXPECT_TRUE(has_whole_slices(earlier.graph));
  EXPECT_EQ(calls_of(without_whole_slices(earlier)),
            "%z: f32[4,5,6] = aten::alias(%x) at s1 drop %x\n"
            "%y: f32[4,4,6] = aten::slice.Tensor(%z, 1, 1, 9223372036854775807) at s1 drop %z\n");
}

TEST(WholeSlices, CheckpointedRegionsGrowWithThem) {
  const Program later = program_of("y = x[:, 0]",
                                   "checkpoint {\n%y: f32[4,6] = aten::select.int(%x, 1, 0) at s1\n}\n"
                                   "%z: f32[4,6] = aten::relu(%y)\n");
  const Graph graph = with_whole_slices(later).graph;
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.checkpoints, (std::vector<CheckpointRegion>{{.begin = 0, .end = 2}}));
}

}  // namespace
}  // namespace metaprof
