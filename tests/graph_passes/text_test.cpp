// The text form of graphs: what is read is what is printed; what is no graph is refused with its line.

#include "graph/ir/text.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"

namespace metaprof::ir {
namespace {

std::string again(std::string_view text) { return to_text(*parse_graph(text, standard_registry())); }

TEST(GraphText, RoundTrip) {
  const std::string text =
      R"(graph(%x: Tensor(f32[*,4](4,1) cpu grad defined), %n: int, %w: Tensor?, %l: Tensor[]) {
  %0: bool = prim::Constant[value=True]()
  %y: Tensor = aten::relu(%x) in layer1.relu
  %z: Tensor(? [*,*]) = prim::Loop(%n, %0, %y) { (%i: int, %s: Tensor)
    %c: bool = aten::lt.int(%i, %n)
    %t: Tensor = prim::If(%c) {
      %u: Tensor = aten::mul.Tensor(%s, %x)
      -> (%u)
    } {
      -> (%s)
    }
    -> (%0, %t)
  }
  %d: Tensor = prim::DifferentiableGraph[graph=graph(%a: Tensor) {
    %b: Tensor = aten::tanh(%a)
    -> (%b)
  }](%z)
  -> (%d, %0)
}
)";
  const std::string printed = again(text);
  EXPECT_EQ(again(printed), printed);
  EXPECT_NE(printed.find("%x: Tensor(f32[*,4](4,1) cpu grad defined)"), std::string::npos) << printed;
  EXPECT_NE(printed.find("in layer1.relu"), std::string::npos) << printed;
}

}  // namespace
}  // namespace metaprof::ir
