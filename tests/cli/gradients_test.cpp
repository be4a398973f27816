// Options of what backward does: gradients of inputs, penalties, hooks on saved tensors.

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

// tests/step/input_gradients_test.cpp has the requests of the same network.
class Gradients : public testing::Test {
 protected:
  Gradients() : file_(testing::TempDir() + "gradients_" + std::to_string(getpid()) + ".mp") {
    std::ofstream(file_) << R"(metaprof program 1
parameter w1 = %w1: f32[64,32] grad
parameter b1 = %b1: f32[64] grad
parameter w2 = %w2: f32[16,64] grad
input x = %x: f32[128,32]
%a: f32[128,64] = aten::linear(%x, %w1, %b1)
%h: f32[128,64] = aten::tanh(%a) drop %a
%y: f32[128,16] = aten::linear(%h, %w2) drop %h
%loss: f32[] = aten::sum(%y) drop %y
loss = %loss
)";
  }
  ~Gradients() override { std::remove(file_.c_str()); }

  Json profile(const std::string& options) const {
    const Outcome outcome = run_program("profile " + file_ + " " + options + " --json -");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }

  const std::string file_;
};

// Not computed: w2's product of 2·128·16·64, w1's of 2·128·64·32, and b1's sum, which has 128·64.
TEST_F(Gradients, OfInputsSayWhatWasNotComputed) {
  const Json plain = profile("--optimizer sgd"), grad = profile("--optimizer sgd --grad x");
  EXPECT_FALSE(plain.contains("flops_not_computed"));
  constexpr int64_t kWeights = int64_t{2} * 128 * 16 * 64 + int64_t{2} * 128 * 64 * 32;
  EXPECT_GE(grad["flops_not_computed"], kWeights);
  EXPECT_LT(grad["flops_not_computed"], kWeights + int64_t{2} * 128 * 64);
  EXPECT_EQ(grad["options"]["grad"], "x");
  EXPECT_EQ(grad["flops"]["optimizer"], 0);
  EXPECT_GT(profile("--grad x --create-graph")["flops"]["backward"], plain["flops"]["backward"]);
  EXPECT_GT(profile("--grad x --hvp")["flops"]["backward"], grad["flops"]["backward"]);
  EXPECT_NE(run_program("profile " + file_ + " --grad x")
                .out.find("gradients that nobody asked for, not computed: "),
            std::string::npos);
}

TEST_F(Gradients, PackedOrOffloadedTensorsAreNotKept) {
  const Json plain = profile("--optimizer sgd"), offload = profile("--optimizer sgd --hooks offload");
  EXPECT_EQ(offload["options"]["hooks"], "offload");
  EXPECT_EQ(offload["saved"]["bytes"], 0);
  EXPECT_GT(plain["saved"]["bytes"], 0);
  const auto after_forward = [](const Json& json) -> int64_t {
    for (const Json& phase : json["phases"])
      if (phase["phase"] == "forward") return phase["allocated_bytes"]["current"];
    return 0;
  };
  EXPECT_LT(after_forward(offload), after_forward(plain));
  EXPECT_NE(after_forward(profile("--optimizer sgd --hooks pack=bf16")), after_forward(plain));
}

TEST_F(Gradients, Refusals) {
  expect_refusal("profile " + file_ + " --grad w1",
                 "--grad: 'w1' is no floating input of " + file_ + "; they are: x");
  expect_refusal("profile " + file_ + " --hvp", "--hvp: it needs --grad with the names of inputs");
  expect_refusal("profile " + file_ + " --hooks pack=f8",
                 "--hooks: 'pack=f8' is not one of: none, offload, offload-pinned, pack=bf16, pack=fp16");
  expect_refusal("profile " + file_ + " --execution graph --hooks offload",
                 "--hooks offload: what a graph keeps is not packed; leave --hooks or --execution out");
  expect_refusal("profile " + file_ + " --execution graph --grad x",
                 "--grad x: gradients of inputs are not compiled; leave --grad or --execution out");
}

}  // namespace
}  // namespace metaprof
