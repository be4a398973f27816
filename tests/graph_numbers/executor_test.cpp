// Compiled plans compute what the graph computes when every operator is called by itself: outputs and gradients.

#include <gtest/gtest.h>

#include "meta/ops/all.h"
#include "step/compiled/ir/text.h"
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
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GraphExecutorOnNumbers, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
});

// --- Several products as one

struct Products {
  const char *name, *node, *text;
};

// Left sides of one shape and right sides of one shape; a side that is shared, on either hand; and shapes of which a
// plan, which serves all sizes, finds only when it runs that they do not fit.
const Products kProducts[] = {
    {"a sum of four", "prim::MMTreeReduce",
     R"(graph(%a: Tensor(f64[2,3] cpu), %b: Tensor(f64[3,4] cpu), %c: Tensor(f64[2,3] cpu), %d: Tensor(f64[3,4] cpu)) {
       %p = aten::mm(%a, %b)
       %q = aten::mm(%c, %d)
       %r = aten::mm(%a, %d)
       %s = aten::mm(%c, %b)
       %t = aten::add.Tensor(%p, %q)
       %u = aten::add.Tensor(%r, %s)
       %v = aten::add.Tensor(%t, %u)
       -> (%v)
     })"},
    {"a sum of four, of other lengths", "prim::MMTreeReduce",
     R"(graph(%a: Tensor(f64[2,3] cpu), %b: Tensor(f64[3,4] cpu), %c: Tensor(f64[2,5] cpu), %d: Tensor(f64[5,4] cpu)) {
       %p = aten::mm(%a, %b)
       %q = aten::mm(%c, %d)
       %s = aten::neg(%a)
       %r = aten::mm(%s, %b)
       %w = aten::neg(%d)
       %x = aten::mm(%c, %w)
       %t = aten::add.Tensor(%p, %q)
       %u = aten::add.Tensor(%r, %x)
       %v = aten::add.Tensor(%t, %u)
       -> (%v)
     })"},
    {"a left side that is shared", "prim::MMBatchSide",
     R"(graph(%x: Tensor(f64[2,3] cpu), %a: Tensor(f64[3,4] cpu), %b: Tensor(f64[3,4] cpu)) {
       %c = aten::neg(%a)
       %d = aten::neg(%b)
       %e = aten::neg(%c)
       %f = aten::neg(%d)
       %g = aten::neg(%e)
       %h = aten::neg(%f)
       %p = aten::mm(%x, %a)
       %q = aten::mm(%x, %b)
       %r = aten::mm(%x, %c)
       %s = aten::mm(%x, %d)
       %t = aten::mm(%x, %e)
       %u = aten::mm(%x, %f)
       %v = aten::mm(%x, %g)
       %w = aten::mm(%x, %h)
       -> (%p, %q, %r, %s, %t, %u, %v, %w)
     })"},
    {"a right side that is shared", "prim::MMBatchSide",
     R"(graph(%x: Tensor(f64[3,4] cpu), %a: Tensor(f64[2,3] cpu), %b: Tensor(f64[2,3] cpu)) {
       %c = aten::neg(%a)
       %d = aten::neg(%b)
       %e = aten::neg(%c)
       %f = aten::neg(%d)
       %g = aten::neg(%e)
       %h = aten::neg(%f)
       %p = aten::mm(%a, %x)
       %q = aten::mm(%b, %x)
       %r = aten::mm(%c, %x)
       %s = aten::mm(%d, %x)
       %t = aten::mm(%e, %x)
       %u = aten::mm(%f, %x)
       %v = aten::mm(%g, %x)
       %w = aten::mm(%h, %x)
       -> (%p, %q, %r, %s, %t, %u, %v, %w)
     })"},
    {"a left side that is shared by others of other widths", "prim::MMBatchSide",
     R"(graph(%x: Tensor(f64[2,3] cpu), %a: Tensor(f64[3,4] cpu), %b: Tensor(f64[3,5] cpu)) {
       %c = aten::neg(%a)
       %d = aten::neg(%b)
       %e = aten::neg(%c)
       %f = aten::neg(%d)
       %g = aten::neg(%e)
       %h = aten::neg(%f)
       %p = aten::mm(%x, %a)
       %q = aten::mm(%x, %b)
       %r = aten::mm(%x, %c)
       %s = aten::mm(%x, %d)
       %t = aten::mm(%x, %e)
       %u = aten::mm(%x, %f)
       %v = aten::mm(%x, %g)
       %w = aten::mm(%x, %h)
       -> (%p, %q, %r, %s, %t, %u, %v, %w)
     })"},
};

TEST(GraphExecutorOnProducts, ComputesWhatTheFallbackComputes) {
  for (const Products& one : kProducts) {
    const auto graph = parse_graph(one.text, standard_registry());
    GraphExecutor compiled(graph, test_options()), plain(graph, test_options(false));
    GraphRun a, b;
    const GraphResult found = a.run(compiled, a.arguments(*graph));
    const GraphResult expected = b.run(plain, b.arguments(*graph));
    EXPECT_EQ(difference(found, expected), "") << one.name << "\n" << explain(compiled);
    EXPECT_NE(to_text(*compiled.last_plan()->graph).find(one.node), std::string::npos) << one.name;
  }
}

}  // namespace
}  // namespace metaprof::ir
