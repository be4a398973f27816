#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kMlp = "tests/data/models/mlp.pt2";

TEST(Cudagraphs, MeasuresTheWholeStepAsOneGraph) {
  const Outcome outcome =
      run_program("cudagraphs " + kMlp + " --whole-network --warmup 3 --workspaces none --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "metaprof.cudagraphs");
  EXPECT_EQ(json["options"]["optimizer"], "sgd-momentum");
  const Json& memory = json["memory"]["whole_network"];
  // Recorded (tests/data/cudagraphs): the pool's 92274688 B are two workspaces of cuBLAS of 32 MiB, a segment of
  // 20 MiB for the largest gradient and two of 2 MiB for what is small.
  EXPECT_EQ(memory["captured"]["segments_by_pool"]["(1, 0)"], 2 * (32 << 20) + (20 << 20) + 2 * (2 << 20));
  EXPECT_EQ(memory["replayed"], memory["captured"]);
  // 64 images of 28 x 28 in fp32 and 64 labels of 8 bytes.
  EXPECT_EQ(memory["copied_bytes_per_step"], 64 * 784 * 4 + 64 * 8);
}

TEST(Cudagraphs, SaysWhatIsCapturedAndWhatATreeDoes) {
  const Json json = Json::parse(run_program("cudagraphs " + kMlp + " --tree --steps 4 --json -").out);
  ASSERT_EQ(json["graphs"].size(), 2u);
  EXPECT_EQ(json["graphs"][0]["captured"], true);
  EXPECT_EQ(json["graphs"][1]["graph"], "backward");
  const Json& tree = json["memory"]["tree"];
  // Recorded: four layers of two parameters, the images, the labels; and the gradient of the loss.
  EXPECT_EQ(tree["counters"], Json::parse("{\"cudagraph_recorded_non_static_inputs\": 11}"));
  ASSERT_EQ(tree["nodes"].size(), 4u);  // two runs to warm up, two recordings
  EXPECT_EQ(tree["nodes"][3]["parent"], 2);
  EXPECT_EQ(tree["nodes"][3]["replays"], 2);
  EXPECT_TRUE(tree["not_modelled"].is_null());
  EXPECT_EQ(tree["reserved"], 88080384);  // recorded (tests/data/cudagraphs)
  const Outcome dot = run_program("cudagraphs " + kMlp + " --tree --dot -");
  EXPECT_EQ(dot.out,
            "digraph cudagraphs {\n  node [shape=box];\n"
            "  n2 [label=\"forward\\n10 inputs copied\\nreplayed 2 times\"];\n"
            "  n3 [label=\"backward\\n1 inputs copied\\nreplayed 2 times\"];\n  n2 -> n3;\n}\n");
}

TEST(Cudagraphs, RequireMakesASkippedGraphAFinding) {
  EXPECT_EQ(run_program("cudagraphs " + kMlp + " --require").exit_code, 0);
  const std::string file = testing::TempDir() + "metaprof_moves.mp";
  std::ofstream(file) << "metaprof program 1\n"
                         "parameter w = %w: f32[3] grad\n"
                         "input x = %x: f32[3]\n"
                         "%z: f32[3] = aten::add_.Scalar(%x, 1)\n"
                         "%y: f32[3] = aten::mul.Tensor(%z, %w)\n"
                         "%loss: f32[] = aten::mean(%y)\n"
                         "loss = %loss\n";
  const Outcome outcome = run_program("cudagraphs " + file + " --require");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.out.find("forward: skipped: input x is written to: aten::add_.Scalar") !=
              std::string::npos)
      << outcome.out;
  std::remove(file.c_str());
}

TEST(Cudagraphs, ATreeOfARecurrentNetworkTakesAnotherBatch) {
  const Outcome outcome =
      run_program("cudagraphs tests/data/cudagraphs/models/half_eager.pt2 --tree --batch 4 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // The loss takes what the eager part hands on, and labels; its backward the gradient of the loss.
  EXPECT_EQ(Json::parse(outcome.out)["memory"]["tree"]["counters"]["cudagraph_recorded_non_static_inputs"],
            3);
}

TEST(Cudagraphs, JudgesACapturedProgramAndSaysThatItsMemoryIsNotModelled) {
  const Outcome outcome = run_program("cudagraphs tests/data/captured/checkpoints.mp --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["graphs"].size(), 2u);
  EXPECT_EQ(json["graphs"][0]["graph"], "forward");
  EXPECT_EQ(json["graphs"][1]["graph"], "backward");
  EXPECT_TRUE(json["memory"].empty());
  EXPECT_TRUE(outcome.err.find("was captured from a run: inputs that it writes to are not looked for") !=
              std::string::npos)
      << outcome.err;
}

TEST(Cudagraphs, SaysThatACaptureWouldBeRefused) {
  const std::string file = testing::TempDir() + "metaprof_reads.mp";
  std::ofstream(file) << "metaprof program 1\n"
                         "parameter w = %w: f32[3] grad\n"
                         "input x = %x: f32[3]\n"
                         "%n: i64[2,1] = aten::nonzero(%x)\n"
                         "%y: f32[3] = aten::mul.Tensor(%x, %w)\n"
                         "%loss: f32[] = aten::mean(%y)\n"
                         "loss = %loss\n";
  const Outcome outcome = run_program("cudagraphs " + file + " --whole-network");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(
      outcome.err.find("forward cannot be captured, so that the figures of the whole step as one graph are "
                       "those of a capture that would go through: the host waits for the device and reads "
                       "data: aten::nonzero") != std::string::npos)
      << outcome.err;
  std::remove(file.c_str());
}

TEST(Cudagraphs, RefusesWhatTheFrameworkCannotCapture) {
  expect_refusal(
      "cudagraphs " + kMlp + " --optimizer adamw",
      "--optimizer adamw: it counts its steps on the host, so that the framework refuses to capture "
      "them; sgd, sgd-momentum and adamw-capturable can be captured");
  expect_refusal(
      "cudagraphs " + kMlp + " --precision amp-fp16",
      "--precision amp-fp16: gradient scaling reads on the host whether gradients overflow, which no "
      "capture allows; amp-bf16 needs none");
  expect_refusal("cudagraphs " + kMlp + " --execution graph",
                 "--execution graph: what is captured is run operator by operator; leave the option out");
  expect_refusal("cudagraphs " + kMlp + " --mode eval",
                 "--mode eval: what is captured is a training step; leave the option out");
  expect_refusal("cudagraphs " + kMlp + " --device cpu", "--device cpu: CUDA graphs are of CUDA devices");
}

}  // namespace
}  // namespace metaprof
