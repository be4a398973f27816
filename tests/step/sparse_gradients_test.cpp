// Optimizers over sparse gradients. Figures in bytes are those of PyTorch 2.11 on an emulated H200, rounded to 512 there.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "meta/program/text.h"
#include "meta/step/step.h"

namespace metaprof {
namespace {

// 300 rows of a table: a gradient of 300 indices (2,400 bytes) and 300 × 64 values (76,800 bytes).
constexpr const char* kEmbedding = R"(metaprof program 1
parameter table = %table: f32[10000,64] grad
input rows = %rows: i64[300]
%e: f32[300,64] = aten::embedding(%table, %rows, -1, False, True)
%loss: f32[] = aten::sum(%e) drop %e
loss = %loss
)";

struct Taken {
  int64_t allocated = 0, freed = 0;
  friend bool operator==(const Taken&, const Taken&) = default;
};

// What every step of the optimizer took and gave back.
std::vector<Taken> taken_by(const std::string& optimizer, const StepOptions& more = {}) {
  StepOptions options = more;
  options.optimizer = optimizer;
  options.steps = 3;
  const Trace trace = run_steps(parse_program(kEmbedding, "embedding"), platform_named("h200"), options);
  std::vector<Taken> steps;
  bool stepping = false;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) {
      stepping = static_cast<Phase>(event.detail) == Phase::optimizer;
      if (stepping) steps.emplace_back();
    }
    if (!stepping || event.id >= trace.storages.size() || !trace.storages[event.id].device.is_cuda())
      continue;
    if (event.kind == Event::Kind::alloc) steps.back().allocated += trace.storages[event.id].bytes.count;
    if (event.kind == Event::Kind::free) steps.back().freed += trace.storages[event.id].bytes.count;
  }
  return steps;
}

std::string refusal(const std::string& optimizer, const StepOptions& options = {}) {
  try {
    taken_by(optimizer, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "it is taken";
}

TEST(SparseGradients, SgdAddsThemToTheTable) {
  EXPECT_EQ(taken_by("sgd"), (std::vector<Taken>{{0, 0}, {0, 0}, {0, 0}}));
}

// The buffer is a copy of the first gradient; then the elements of the next one are put behind its own.
TEST(SparseGradients, MomentumGrowsByEveryGradient) {
  constexpr int64_t kOne = 2400 + 76800;
  EXPECT_EQ(taken_by("sgd-momentum"),
            (std::vector<Taken>{{kOne, 0}, {2 * kOne, kOne}, {3 * kOne, 2 * kOne}}));
}

TEST(SparseGradients, AreRefusedByOthers) {
  EXPECT_NE(refusal("adam").find("does not take sparse gradients, in the framework neither"),
            std::string::npos);
  EXPECT_NE(refusal("rmsprop").find("does not take sparse gradients"), std::string::npos);
  EXPECT_NE(refusal("adagrad").find("is not modelled"), std::string::npos);
  StepOptions clipped;
  clipped.clip_norm = 1.0;
  EXPECT_NE(refusal("sgd", clipped).find("sparse gradients cannot be clipped"), std::string::npos);
}

}  // namespace
}  // namespace metaprof
