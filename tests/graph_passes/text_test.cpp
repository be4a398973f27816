// The text form of graphs: what is read is what is printed; what is no graph is refused with its line.

#include "step/compiled/ir/text.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"
#include "step/compiled/ir/dot.h"

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

struct Refusal {
  const char *text, *message;
};

const std::string kDeep = [] {
  std::string text = "graph(%c: bool) {\n";
  for (int i = 0; i < 60; ++i) text += "prim::If(%c) {\n";
  return text;
}();

const Refusal kRefusals[] = {
    // No graph at all
    {"grph(%x: Tensor) { -> (%x) }", "line 1: a graph begins with 'graph('"},
    {"graph %x: Tensor { -> (%x) }", "line 1: expected '(' before '%x: Tensor { -> (%x)'"},
    {"graph(x: Tensor) { -> (%x) }", "line 1: a value as %x is expected before 'x: Tensor) { -> (%x)'"},
    {"graph(%: Tensor) { -> (%x) }", "line 1: a value needs a name behind its %"},
    {"graph(%x: Tensor) {\n  %y = aten::relu(%x)\n", "line 3: the text ends within a block"},
    {"graph(%x: Tensor) {\n  -> (%x)\n}\nmore", "line 4: something stands behind the graph"},
    {kDeep.c_str(), "line 53: blocks and graphs are nested too deep, more than 50"},
    // Types
    {"graph(%x: Tensr) { -> (%x) }", "line 1: no type is called 'Tensr'"},
    {"graph(%x: Tensor(f32[2] fast)) { -> (%x) }",
     "line 1: a tensor is described by its dtype and sizes, cpu or cuda, grad or no_grad, defined or "
     "undefined; not "
     "by 'fast'"},
    {"graph(%x: Tensor[](cpu)) { -> (%x) }",
     "line 1: a list of tensors is described by grad or no_grad, not by 'cpu'"},
    {"graph(%x: Tensor(f32[two])) { -> (%x) }", "line 1: 'two' is no integer"},
    // Constants
    {"graph(%x: Tensor) {\n  %y = aten::sum.dim_IntList(%x, [0, half])\n  -> (%y)\n}",
     "line 2: 'half' is no constant"},
    {"graph(%x: Tensor) {\n  %y = aten::sum.dim_IntList(%x, [0, None])\n  -> (%y)\n}",
     "line 2: a list of constants holds numbers of one kind"},
    {"graph(%x: Tensor) {\n  %y = aten::gelu(%x, approximate=\"tanh)\n  -> (%y)\n}",
     "line 2: a text without closing quotes"},
    {"graph(%x: Tensor) {\n  %y = aten::to.device(%x, device(tpu), f32)\n  -> (%y)\n}",
     "line 2: no device is called 'tpu'"},
    // Values
    {"graph(%x: Tensor) {\n  %x = aten::relu(%x)\n  -> (%x)\n}", "line 3: %x is made twice"},
    {"graph(%x: Tensor) {\n  %y = aten::relu(%z)\n  -> (%y)\n}", "line 2: %z is not made yet"},
    {"graph(%x: Tensor, %c: bool) {\n  %y: Tensor = prim::If(%c) {\n    %z = aten::relu(%x)\n    -> (%z)\n  "
     "} {\n"
     "    -> (%x)\n  }\n  -> (%z)\n}",
     "line 8: %z is not made yet"},
    // Nodes
    {"graph(%x: Tensor) {\n  %y = (%x)\n  -> (%y)\n}", "line 2: the name of an operator is expected"},
    {"graph(%x: Tensor) {\n  %y = aten::rectify(%x)\n  -> (%y)\n}",
     "line 2: there is no operator aten::rectify"},
    {"graph(%x: Tensor) {\n  %y: Tensor = prim::ConstantChunk[of=\"aten::no\"](%x, 2, 0)\n  -> (%y)\n}",
     "line 2: prim::ConstantChunk: 'of' names no operator"},
    {"graph(%x: Tensor) {\n  %y: int = prim::Constant[value=1, value=2]()\n  -> (%y)\n}",
     "line 2: the attribute 'value' is given twice"},
    {"graph(%x: Tensor) {\n  %y = aten::relu(%x, 1)\n  -> (%y)\n}", "line 2: aten::relu takes 1 arguments"},
    {"graph(%x: Tensor) {\n  %y = aten::mm(%x)\n  -> (%y)\n}",
     "line 3: aten::mm: the argument 'mat2' is missing"},
    {"graph(%x: Tensor) {\n  %y, %z = aten::relu(%x)\n  -> (%y)\n}",
     "line 3: aten::relu makes 1 values, of which 2 have names"},
    // What is read and is no graph
    {"graph(%x: Tensor, %c: bool) {\n  %y: Tensor = prim::If(%c) {\n    -> (%x)\n  }\n  -> (%y)\n}",
     "prim::If: needs a condition and two blocks"},
    {"graph(%x: Tensor, %c: bool) {\n  %y: Tensor = prim::If(%c) {\n    -> (%x)\n  } {\n    -> ()\n  }\n  -> "
     "(%y)\n}",
     "prim::If: needs blocks without inputs and with its outputs"},
    {"graph(%x: Tensor, %n: int) {\n  %y: Tensor = prim::Loop(%n, True, %x)\n  -> (%y)\n}",
     "prim::Loop: needs trips, a condition and one block"},
    {"graph(%x: Tensor, %n: int) {\n  %y: Tensor = prim::Loop(%n, True, %x) { (%i: int)\n    -> (True)\n  "
     "}\n  -> (%y)\n}",
     "prim::Loop: needs a block that takes the trip and what is carried, and gives a condition and what is "
     "carried"},
    {"graph(%x: Tensor) {\n  %y: Tensor = prim::DifferentiableGraph[graph=graph() {\n    -> ()\n  }](%x)\n  "
     "-> (%y)\n}",
     "prim::DifferentiableGraph: needs a graph with its inputs"},
    {"graph(%x: Tensor) {\n  %y: Tensor = prim::FusionGroup[graph=graph(%a: Tensor) {\n    -> ()\n  }](%x)\n "
     " -> (%y)\n}",
     "prim::FusionGroup: needs a graph with its inputs and outputs"},
    {"graph(%x: Tensor) {\n  %y: Tensor = prim::AutogradAdd(%x)\n  -> (%y)\n}",
     "prim::AutogradAdd: needs two inputs"},
};

TEST(GraphText, RefusesWhatIsNoGraph) {
  for (const Refusal& refusal : kRefusals) {
    try {
      again(refusal.text);
      ADD_FAILURE() << refusal.text;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), refusal.message) << refusal.text;
    }
  }
}

// Constants of every kind, lists of which none, some or all are values, and names that need quotes.
TEST(GraphText, RoundTripOfConstantsAndLists) {
  const std::string text =
      R"(graph(%x: Tensor, %l: Tensor[](no_grad), %n: int?) {
  %0: float = prim::Constant[value=0.5]()
  %1: str = prim::Constant[value="a \"quoted\" text"]()
  %2: int[] = prim::Constant[value=[1, 2]]()
  %3: Device = prim::Constant[value=device(cuda:1)]()
  %4: None = prim::Constant[value=None]()
  %5: Tensor[](grad) = prim::ListConstruct(%x, %x) in "a b"
  -> (%0, %1, %2, %3, %4, %5, %l, %n)
}
)";
  EXPECT_EQ(again(text), text);
}

TEST(GraphDot, DrawsNodesAndWhatIsInside) {
  const auto graph = parse_graph(R"(graph(%x: Tensor, %c: bool) {
  %y: Tensor = prim::If(%c) {
    %z = aten::relu(%x)
    -> (%z)
  } {
    -> (%x)
  }
  -> (%y)
})",
                                 standard_registry());
  EXPECT_EQ(to_dot(*graph), R"(digraph graph_ir {
  node [shape=box, fontname="monospace"];
  n0 [label="inputs"];
  n1 [label="prim::If"];
  n0 -> n1 [label="c"];
  subgraph cluster_0 { label="prim::If";
  n2 [label="inputs"];
  n3 [label="aten::relu"];
  n0 -> n3 [label="x"];
  n4 [label="outputs"];
  n3 -> n4 [label="z"];
  }
  subgraph cluster_1 { label="prim::If";
  n5 [label="inputs"];
  n6 [label="outputs"];
  n0 -> n6 [label="x"];
  }
  n7 [label="outputs"];
  n1 -> n7 [label="y"];
}
)");
}

}  // namespace
}  // namespace metaprof::ir
