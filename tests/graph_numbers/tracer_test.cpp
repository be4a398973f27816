// A traced run: its values are those of the fallback; its graph has the executor's graph in it, control flow and all,
// so that it computes the same for another number of trips, which a trace of single calls would not.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"
#include "step/compiled/executor/graph_tracer.h"
#include "step/compiled/ir/text.h"
#include "tests/graph_numbers/run_graph.h"

namespace metaprof::ir {
namespace {

constexpr const char* kLoop = R"(graph(%x: Tensor, %n: int) {
  %r: Tensor = prim::Loop(%n, True, %x) { (%i: int, %s: Tensor)
    %odd = aten::remainder.int(%i, 2)
    %c = aten::eq.int(%odd, 1)
    %t: Tensor = prim::If(%c) {
      %u = aten::sin(%s)
      -> (%u)
    } {
      %u = aten::cos(%s)
      -> (%u)
    }
    -> (True, %t)
  }
  -> (%r)
})";

const Operator& operator_named(const char* name) { return *standard_registry().find(name); }

TEST(GraphTracer, KeepsTheControlFlowOfExecutors) {
  GraphExecutor loop(parse_graph(kLoop, standard_registry()), test_options());
  GraphRun run;
  const auto inputs = run.arguments(
      *parse_graph("graph(%x: Tensor(f64[2,3] cpu grad), %n: int) { -> (%x) }", standard_registry()), {3});
  GraphTracer tracer(*run.session, inputs);
  const auto doubled = tracer.call(operator_named("aten::add.Tensor"), {inputs[0], inputs[0]});
  const auto looped = tracer.run(loop, {doubled[0], inputs[1]});
  const auto traced = tracer.finish(looped);
  EXPECT_TRUE(loop.plans().empty()) << "values come from the fallback";

  const std::string text = to_text(*traced);
  EXPECT_NE(text.find("prim::Loop"), std::string::npos) << text;
  EXPECT_NE(text.find("prim::If"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::add.Tensor"), std::string::npos) << text;
  // What is known of the arguments is known inside.
  EXPECT_NE(text.find("Tensor(f64[*,*] cpu"), std::string::npos) << text;

  GraphExecutor compiled(traced, test_options());
  const auto again = compiled.run(*run.session, inputs);
  EXPECT_EQ(run.read(again[0].tensor()), run.read(looped[0].tensor()));
}

TEST(GraphTracer, RefusesTensorsThatItHasNotSeen) {
  GraphRun run;
  const auto seen = run.arguments(
      *parse_graph("graph(%x: Tensor(f64[2] cpu), %y: Tensor(f64[2] cpu)) { -> (%x) }", standard_registry()));
  GraphTracer tracer(*run.session, {seen.data(), 1});
  try {
    tracer.call(operator_named("aten::add.Tensor"), {seen[0], seen[1]});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "a tensor is used in a traced run that neither came in nor was made in it: pass it as an input");
  }
}

}  // namespace
}  // namespace metaprof::ir
