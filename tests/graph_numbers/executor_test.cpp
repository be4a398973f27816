// Compiled plans compute what the graph computes when every operator is called by itself: outputs and gradients.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/ir/text.h"
#include "meta/ops/all.h"
#include "tests/graph_numbers/run_graph.h"

namespace metaprof::ir {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<int64_t> integers;
  bool second = true;  // second derivatives, too
};

const Case kCases[] = {
    {"chain",
     R"(graph(%x: Tensor(f64[3,4] cpu grad), %y: Tensor(f64[3,4] cpu grad)) {
       %z = aten::mul.Tensor(%x, %y)
       %t = aten::tanh(%z)
       %w = aten::add.Tensor(%t, %x)
       %s = aten::sigmoid(%w)
       %r = aten::mul.Tensor(%s, %y)
       -> (%r)
     })",
     {}},
    {"broadcast",
     R"(graph(%x: Tensor(f64[3,4] cpu grad), %b: Tensor(f64[4] cpu grad), %s: Tensor(f64[] cpu grad)) {
       %z = aten::add.Tensor(%x, %b)
       %t = aten::mul.Tensor(%z, %s)
       %r = aten::exp(%t)
       -> (%r)
     })",
     {}},
    {"mlp",
     R"(graph(%x: Tensor(f64[5,3] cpu), %w: Tensor(f64[4,3] cpu grad), %b: Tensor(f64[4] cpu grad), %v: Tensor(f64[2,4] cpu grad)) {
       %h = aten::linear(%x, %w, %b)
       %a = aten::gelu(%h)
       %o = aten::linear(%a, %v, None)
       %l = aten::log_softmax.int(%o, 1)
       %m = aten::mean(%l)
       -> (%m)
     })",
     {},
     false},
    {"products",
     R"(graph(%x: Tensor(f64[5,3] cpu grad), %w: Tensor(f64[3,4] cpu grad), %b: Tensor(f64[4] cpu grad)) {
       %h = aten::addmm(%b, %x, %w)
       %a = aten::relu(%h)
       %t = aten::t(%w)
       %o = aten::mm(%a, %t)
       -> (%o, %a)
     })",
     {}},
    {"loop and branch",
     R"(graph(%x: Tensor(f64[3] cpu grad), %w: Tensor(f64[3] cpu grad), %n: int) {
       %r: Tensor = prim::Loop(%n, True, %x) { (%i: int, %s: Tensor)
         %odd = aten::remainder.int(%i, 2)
         %c = aten::eq.int(%odd, 1)
         %t: Tensor = prim::If(%c) {
           %u = aten::mul.Tensor(%s, %w)
           %v = aten::sin(%u)
           -> (%v)
         } {
           %u = aten::add.Tensor(%s, %w)
           %v = aten::cos(%u)
           -> (%v)
         }
         -> (True, %t)
       }
       -> (%r)
     })",
     {11}},
    {"lists",
     R"(graph(%x: Tensor(f64[2,3] cpu grad), %y: Tensor(f64[4,3] cpu grad)) {
       %a = aten::tanh(%x)
       %c = aten::cat([%a, %y, %a], 0)
       %e = aten::exp(%c)
       %p = aten::split_with_sizes(%e, [3, 5], 0)
       %q: Tensor, %r: Tensor = prim::ListUnpack(%p)
       %s = aten::mul.Tensor(%q, 2)
       %o = aten::sigmoid(%s)
       -> (%o, %r)
     })",
     {}},
};

class GraphExecutorOnNumbers : public ::testing::TestWithParam<Case> {};

TEST_P(GraphExecutorOnNumbers, ComputesWhatTheFallbackComputes) {
  const Case& one = GetParam();
  const auto graph = parse_graph(one.text, standard_registry());
  for (const bool without_inlining : {false, true}) {
    ExecutorOptions options = test_options();
    options.compile.without_inlining = without_inlining;
    GraphExecutor compiled(graph, options), plain(graph, test_options(false));
    GraphRun a, b;
    const GraphResult found = a.run(compiled, a.arguments(*graph, one.integers), one.second);
    const GraphResult expected = b.run(plain, b.arguments(*graph, one.integers), one.second);
    ASSERT_EQ(expected.error, "");
    EXPECT_EQ(difference(found, expected), "") << explain(compiled);
    ASSERT_FALSE(expected.gradients.empty());
    if (getenv("SHOW")) fmt::print("{}\n", explain(compiled));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GraphExecutorOnNumbers, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
});

}  // namespace
}  // namespace metaprof::ir
