// Programs as graphs: what becomes of a call, of regions of a mode, and what is refused.

#include "step/compiled/ir/from_program.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"
#include "program/text/text.h"
#include "step/compiled/ir/text.h"

namespace metaprof::ir {
namespace {

std::string graph_of(const std::string& lines, bool training = true) {
  const Program program = parse_program("metaprof program 1\n" + lines, "net.mp");
  return to_text(*from_program(program, standard_registry(), training));
}

TEST(FromProgram, CallsAndListsAndNumbers) {
  EXPECT_EQ(graph_of(R"(parameter w = %w: f32[4,3] grad
input x = %x: f32[2,3]
scope m1 = ""
scope m2 = fc in m1
%y: f32[2,4] = aten::linear(%x, %w) in m2
[%a: f32[1,4], %b: f32[1,4]] = aten::chunk(%y, 2)
%z: f32[2,4] = aten::cat([%b, %a])
output = %z
)"),
            R"(graph(%w: Tensor, %x: Tensor) {
  %0: None = prim::Constant[value=None]()
  %y: Tensor = aten::linear(%x, %w, %0) in fc
  %1: int = prim::Constant[value=2]()
  %2: int = prim::Constant[value=0]()
  %3: Tensor[] = aten::chunk(%y, %1, %2)
  %a: Tensor, %b: Tensor = prim::ListUnpack(%3)
  %4: Tensor[] = prim::ListConstruct(%b, %a)
  %5: int = prim::Constant[value=0]()
  %z: Tensor = aten::cat(%4, %5)
  -> (%z)
}
)");
}

// What is computed without gradients takes its tensors detached; autocast that is off is no mode.
TEST(FromProgram, RegionsStandAmongTheOtherCalls) {
  EXPECT_EQ(graph_of(R"(input x = %x: f32[2]
graph {
  input %a: f32[2]
  graph {
    input %b: f32[2]
    %c: f32[2] = aten::sin(%b)
    return %c
  } as g0
  %d: f32[2] = higher_order::wrap_with_autocast("cuda", None, False, None, graph(g0), %a)
  return %d
} as g1
%y: f32[2] = higher_order::wrap_with_set_grad_enabled(False, graph(g1), %x)
%z: f32[2] = aten::relu(%y)
output = %z
)"),
            R"(graph(%x: Tensor) {
  %0: Tensor = aten::detach(%x)
  %c: Tensor = aten::sin(%0)
  %z: Tensor = aten::relu(%c)
  -> (%z)
}
)");
}

struct Refused {
  const char *lines, *why;
};

TEST(FromProgram, RefusesWhatIsNoGraph) {
  const Refused kRefused[] = {
      {"input x = %x: f32[2]\ncheckpoint {\n%y: f32[2] = aten::sin(%x)\n}\noutput = %y\n",
       "it checkpoints a part of the model, which is run again in backward"},
      {"input x = %x: f32[2]\ngraph {\ninput %a: f32[2]\nreturn %a\n} as g0\n"
       "%y: f32[2] = higher_order::tag_activation_checkpoint(graph(g0), %x)\noutput = %y\n",
       "it checkpoints a part of the model, which is run again in backward"},
      {"input x = %x: f32[2]\ngraph {\ninput %a: f32[2]\nreturn %a\n} as g0\n"
       "%y: f32[2] = higher_order::wrap_with_autocast(\"cuda\", 15, True, None, graph(g0), %x)\noutput = "
       "%y\n",
       "a part of it runs under autocast"},
      {"input x = %x: f32[2]\ngraph {\ninput %a: f32[2]\ngraph {\ninput %b: f32[2]\nreturn %b\n} as g0\n"
       "%c: f32[2] = higher_order::wrap_with_set_grad_enabled(True, graph(g0), %a)\nreturn %c\n} as g1\n"
       "%y: f32[2] = higher_order::wrap_with_set_grad_enabled(False, graph(g1), %x)\noutput = %y\n",
       "gradients are turned on where they are off"},
      {"input x = %x: f32[2]\ngraph {\ninput %a: f32[2]\nreturn %a\n} as g0\n"
       "%y: f32[2] = higher_order::wrap_with_set_grad_enabled(False, graph(g0))\noutput = %y\n",
       "a region is given other values than it takes"},
      {"input x = %x: f32[2]\ngraph {\ninput %a: f32[2]\nreturn %a\n} as g0\n"
       "%y: f32[2] = higher_order::cond(%x, graph(g0))\noutput = %y\n",
       "the operator higher_order::cond has no record, or encloses other calls"},
      {"input x = %x: f32[2]\n%y: f32[2] = aten::sin(%x, odd=3)\noutput = %y\n",
       "aten::sin has no argument odd"},
      {"input x = %x: f32[2]\n%y: f32[2] = aten::sin(unknown(\"as_thing\"))\noutput = %y\n",
       "a call has an argument of a kind that is not known, as_thing"},
      {"resized 4 to 2\ninput x = %x: f32[2] exported [4]\n%y: f32[2] = aten::sin(%x)\noutput = %y\n",
       "an input has another size than in the export, whose numbers do not follow it"},
      {"captured torch 2.11.0\nstep::phase(\"forward\", 0, -1)\n",
       "it was captured from a run and holds whole steps"},
  };
  for (const Refused& refused : kRefused) {
    try {
      graph_of(refused.lines);
      ADD_FAILURE() << refused.lines;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "net.mp: this model is not compiled as a graph: " + std::string(refused.why) +
                                  "; run it eagerly");
    }
  }
}

}  // namespace
}  // namespace metaprof::ir
