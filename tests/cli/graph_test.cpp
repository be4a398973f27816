#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kMlp = "tests/data/models/mlp.pt2";

TEST(GraphCommand, ShowsPassesPlansAndCounters) {
  const Outcome outcome = run_program("graph " + kMlp + " --workspaces none --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "metaprof.graph");
  const auto pass = std::ranges::find_if(
      json["passes"], [](const Json& row) { return row["name"] == "create_differentiable_graphs"; });
  ASSERT_NE(pass, json["passes"].end());
  // Four linear layers, three activations and the loss; the loss has no formula of its own in graphs and stays.
  EXPECT_EQ((*pass)["nodes_before"], 8);
  EXPECT_EQ((*pass)["nodes_after"], 2);
  ASSERT_EQ(json["plans"].size(), 2u);
  EXPECT_EQ(json["plans"][1]["name"], "plan 1, gradient 1, plan 1");
  EXPECT_EQ(json["counters"], Json::parse(R"({"executors": 2, "invocations": 2, "hits": 0, "misses": 2})"));
  EXPECT_EQ(json["execution"]["eager"]["kernels"], json["execution"]["graph"]["kernels"]);
}

// Two steps take the same plans.
TEST(GraphCommand, CompilesOnceForAllSteps) {
  const Json json = Json::parse(run_program("graph " + kMlp + " --steps 3 --workspaces none --json -").out);
  EXPECT_EQ(json["counters"], Json::parse(R"({"executors": 2, "invocations": 6, "hits": 4, "misses": 2})"));
}

TEST(GraphCommand, PrintsGraphsBeforeAndAfterPasses) {
  const std::string one =
      run_program("graph " + kMlp + " --passes create_differentiable_graphs,decompose").out;
  EXPECT_TRUE(one.starts_with("before create_differentiable_graphs\ngraph(")) << one;
  EXPECT_NE(one.find("\nafter create_differentiable_graphs\ngraph("), std::string::npos) << one;
  EXPECT_NE(one.find("\ndecompose: nothing changes\n"), std::string::npos) << one;
  EXPECT_EQ(one.find("before differentiate"), std::string::npos) << one;
  const std::string all = run_program("graph " + kMlp + " --passes").out;
  EXPECT_NE(all.find("before differentiate"), std::string::npos) << all;
  // Without the pass nothing is differentiated in graphs.
  const Json without = Json::parse(
      run_program("graph " + kMlp + " --without create_differentiable_graphs,fuse_elementwise --json -").out);
  EXPECT_EQ(without["plans"].size(), 1u);
}

TEST(GraphCommand, ExplainsAndDraws) {
  const std::string text = run_program("graph " + kMlp + " --explain").out;
  EXPECT_TRUE(text.starts_with("executor: graph\ngraph(")) << text;
  EXPECT_NE(text.find("\nexecutor, plan 1, gradient 1: graph\n"), std::string::npos) << text;
  EXPECT_TRUE(run_program("graph " + kMlp + " --dot -").out.starts_with("digraph "));
  const Json fallback = Json::parse(run_program("graph " + kMlp + " --fallback --json -").out);
  EXPECT_EQ(fallback["plans"].size(), 0u);
  EXPECT_EQ(fallback["execution"]["eager"], fallback["execution"]["graph"]);
}

TEST(GraphCommand, ProfileComparesBothWaysOfExecution) {
  const Outcome graph = run_program("profile " + kMlp + " --execution graph --json -");
  ASSERT_EQ(graph.exit_code, 0) << graph.err;
  const Json json = Json::parse(graph.out);
  EXPECT_EQ(json["options"]["execution"], "graph");
  EXPECT_EQ(json["execution"]["graph"]["peak_bytes"], json["peak"]["allocated_bytes"]);
  EXPECT_EQ(json["execution"]["graph"]["saved_bytes"], json["saved"]["bytes"]);
  const Json eager = Json::parse(run_program("profile " + kMlp + " --json -").out);
  EXPECT_EQ(json["execution"]["eager"]["peak_bytes"], eager["peak"]["allocated_bytes"]);
  EXPECT_FALSE(eager.contains("execution"));
  EXPECT_NE(run_program("profile " + kMlp + " --execution graph").out.find("Eager and compiled as a graph"),
            std::string::npos);
}

// The loss is computed outside of all modules but the root, in both.
TEST(GraphCommand, CallsAreThoseOfTheirModules) {
  const auto peak = [](const char* execution) -> Json {
    return Json::parse(
        run_program("profile tests/data/models/gpt2.pt2 --optimizer none --workspaces none --json - " +
                    std::string("--execution ") + execution)
            .out)["peak"];
  };
  const Json eager = peak("eager"), graph = peak("graph");
  EXPECT_EQ(eager["op"], "aten::_log_softmax_backward_data");
  EXPECT_EQ(graph["op"], eager["op"]);
  EXPECT_EQ(graph["module"], eager["module"]);
}

TEST(GraphCommand, SaysOfWhatTheFiguresOfTheGraphAre) {
  const std::string model = "tests/data/graph_executor/models/branches.pt2 --workspaces none";
  const Json profile = Json::parse(run_program("profile " + model + " --execution graph --json -").out);
  const Json& scope = profile["execution"]["scope"];
  EXPECT_EQ(scope["device"], "h200");
  EXPECT_EQ(scope["fuses"], true);
  EXPECT_EQ(scope["compiled"], true);
  EXPECT_EQ(scope["plans"], 1);
  EXPECT_EQ(scope["plans_of_gradients"], 1);
  EXPECT_EQ(scope["fused_kernels"], 2);
  EXPECT_EQ(scope["fused_operators"], 5);
  EXPECT_EQ(scope["batches_of_products"], 0);
  EXPECT_EQ(scope["differentiated_eagerly"]["aten::exp"], 1);
  EXPECT_EQ(scope["branches_followed"], 0);
  EXPECT_TRUE(std::ranges::count(scope["passes"], Json("fuse_elementwise")));
  const std::string text = run_program("graph " + model).out;
  EXPECT_NE(
      text.find(
          "the graph is of h200: 1 plan and 1 plan of gradients; 19 passes; 5 operators in 2 fused kernels, "
          "0 batches of products\noutside of differentiated graphs, where eager autograd computes the "
          "gradients: 1 aten::add.Tensor, 1 aten::exp"),
      std::string::npos)
      << text;
  const auto scope_of = [&](const std::string& options) {
    return Json::parse(run_program("graph " + model + options + " --json -").out)["execution"]["scope"];
  };
  const Json on_host = scope_of(" --device cpu"), without = scope_of(" --without fuse_elementwise"),
             fallback = scope_of(" --fallback");
  EXPECT_EQ(on_host["fuses"], false);
  EXPECT_EQ(on_host["fused_kernels"], 0);
  EXPECT_EQ(without["passes_left_out"], Json::array({"fuse_elementwise"}));
  EXPECT_EQ(fallback["compiled"], false);
  EXPECT_NE(run_program("graph " + model + " --device cpu")
                .out.find("on the host PyTorch's graph executor fuses nothing"),
            std::string::npos);
  EXPECT_NE(
      run_program("graph " + model + " --fallback").out.find("not compiled, it ran as it is (--fallback)"),
      std::string::npos);
}

TEST(GraphCommand, RefusesWhatIsNotCompiled) {
  expect_refusal_with("graph tests/data/control_flow/models/refined.pt2 --trips 1",
                      {"higher_order::while_loop is in it, which torch.jit cannot script"});
  expect_refusal("graph " + kMlp + " --execution eager",
                 "--execution has no effect on graph, which runs both");
  expect_refusal(
      "graph " + kMlp + " --precision amp-bf16",
      "--precision amp-bf16: a graph is compiled in the dtypes of the export; export the model in 16 "
      "bits, or leave --precision or --execution out");
  expect_refusal("profile " + kMlp + " --execution graph --checkpoint model.body.0",
                 "--checkpoint model.body.0: what backward recomputes is not compiled as a graph; "
                 "leave --checkpoint or --execution out");
  expect_refusal(
      "profile " + kMlp + " --execution graph --anomaly",
      "--anomaly: gradients inside a graph are not looked through; leave --anomaly or --execution out");
  expect_refusal("profile " + kMlp + " --execution graphs",
                 "--execution: 'graphs' is not one of: eager, graph; did you mean 'graph'?");
  expect_refusal("graph " + kMlp + " --batch 3",
                 kMlp +
                     ": this model is not compiled as a graph: an input has another size than in the "
                     "export, whose numbers do not follow it; run it eagerly");
  expect_refusal_with("graph " + kMlp + " --passes fuse",
                      {"no pass is called 'fuse'; there are lower_grad_of, "});
  expect_refusal_with("graph " + kMlp + " --without fuse",
                      {"no pass is called 'fuse'; there are lower_grad_of, "});
  expect_refusal(
      "graph tests/data/models/checkpoint_mlp.pt2",
      "tests/data/models/checkpoint_mlp.pt2: this model is not compiled as a graph: it checkpoints a part "
      "of the model, which is run again in backward; run it eagerly");
}

TEST(GraphCommand, RefusesTracesAndCapturedPrograms) {
  const std::string trace = testing::TempDir() + "metaprof_graph.trace";
  ASSERT_EQ(run_program("profile " + kMlp + " --steps 1 --write-trace " + trace).exit_code, 0);
  expect_refusal("graph " + trace,
                 "metaprof_graph: a trace has no program that could be compiled: give the model");
  std::remove(trace.c_str());
  expect_refusal(
      "graph tests/data/captured/checkpoints.mp",
      "checkpoints: was captured from a run and holds whole steps, which are not compiled as a graph: give "
      "the model");
  expect_refusal(
      "profile tests/data/captured/checkpoints.mp --execution graph",
      "--execution: tests/data/captured/checkpoints.mp was captured from a run, whose steps are its own");
}

}  // namespace
}  // namespace metaprof
