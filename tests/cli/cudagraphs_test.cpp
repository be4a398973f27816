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

TEST(Cudagraphs, RefusesWhatTheFrameworkCannotCapture) {
  expect_refusal(
      "cudagraphs " + kMlp + " --optimizer adamw",
      "--optimizer adamw: it counts its steps on the host, so that the framework refuses to capture "
      "them; sgd, sgd-momentum and adamw-capturable can be captured");
  expect_refusal(
      "cudagraphs " + kMlp + " --precision amp-fp16",
      "--precision amp-fp16: gradient scaling reads on the host whether gradients overflow, which no "
      "capture allows; amp-bf16 needs none");
  expect_refusal("cudagraphs " + kMlp + " --mode eval",
                 "--mode eval: what is captured is a training step; leave the option out");
  expect_refusal("cudagraphs " + kMlp + " --device cpu", "--device cpu: CUDA graphs are of CUDA devices");
}

}  // namespace
}  // namespace metaprof
