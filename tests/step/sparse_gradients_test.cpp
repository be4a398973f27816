// Optimizers over sparse gradients. Figures in bytes are those of PyTorch 2.11 on an emulated H200, rounded to 512 there.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "profiler/unmodelled.h"
#include "program/text/text.h"
#include "step/step.h"

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

// Of 300 rows, which are taken to be different. Coalescing copies the 300 indices, which then are sorted (copies of keys
// and places, 2,560 each on their own, a count per tile, 255 of slack) and thinned out; the copy and new values stay.
constexpr int64_t kRow = 2400, kValues = 76800;
constexpr Taken kCoalesced = {3 * kRow + 5631 + 1535 + kValues, 2 * kRow + 5631 + 1535};
// Rows of a dense tensor at a gradient's places: a one, the rows, indices, the product of rows and ones.
constexpr Taken kMasked = {4 + kValues + kRow + kValues, kValues + 4};

// The sum of squares gets their squares; then the sum's rows, and the change, which goes.
TEST(SparseGradients, AdagradTakesEveryRowOnce) {
  const Taken step = {kCoalesced.allocated + kMasked.allocated + 2 * kValues,
                      kCoalesced.freed + kMasked.freed + 2 * kValues + (kRow + kValues) + (kRow + kValues)};
  EXPECT_EQ(taken_by("adagrad"), (std::vector<Taken>{step, step, step}));
}

// Two means at the gradient's rows, their values without indices; what they become, twice, and the change.
TEST(SparseGradients, SparseAdamWritesToRows) {
  const int64_t taken = kCoalesced.allocated + 2 * kMasked.allocated + 3 * kValues;
  const int64_t table = int64_t{10000} * 64 * 4;
  EXPECT_EQ(taken_by("sparse-adam"),
            (std::vector<Taken>{{taken + 2 * table, taken}, {taken, taken}, {taken, taken}}));
}

// How many rows differ is data: the report says that a size is an assumption, and --strict refuses it.
TEST(SparseGradients, HowManyRowsDifferIsAnAssumption) {
  StepOptions options;
  options.optimizer = "sparse-adam";
  const Program program = parse_program(kEmbedding, "embedding");
  const Trace trace = run_steps(program, platform_named("h200"), options);
  const std::vector<UnmodelledRow> rows = unmodelled_rows(trace);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].op, "aten::_coalesce");
  EXPECT_TRUE(rows[0].assumed);
  EXPECT_GT(rows[0].share_of_output_bytes, 0);
  options.strict = true;
  EXPECT_NE(refusal("sparse-adam", options)
                .find("aten::_coalesce (module ''): the size of its result follows from"),
            std::string::npos);
}

// A padding index makes the gradient's rows data; none is taken to be padding: 300 rows, not 0.
TEST(SparseGradients, NoIndexIsTakenToBePadding) {
  for (const std::string sizes : {"300", "30,10"}) {
    std::string text = kEmbedding;
    text.replace(text.find("-1, False, True"), 2, "0");
    text.replace(text.find("i64[300]") + 4, 3, sizes);
    text.replace(text.find("f32[300,64]") + 4, 3, sizes);
    StepOptions options;
    options.optimizer = "sgd";
    const Trace trace = run_steps(parse_program(text, "embedding"), platform_named("h200"), options);
    const std::vector<UnmodelledRow> rows = unmodelled_rows(trace);
    ASSERT_EQ(rows.size(), 1U) << sizes;
    EXPECT_EQ(rows[0].op, "aten::index.Tensor");
    const auto has = [&](const Sizes& wanted) {
      return std::ranges::any_of(trace.tensors, [&](const TensorRecord& tensor) {
        return std::ranges::equal(trace.shape(tensor), wanted);
      });
    };
    EXPECT_TRUE(has({1, 300}) && has({300, 64})) << "as many rows as indices: " << sizes;
  }
}

TEST(SparseGradients, AreRefusedByOthers) {
  EXPECT_NE(refusal("adam").find("does not take sparse gradients, in the framework neither"),
            std::string::npos);
  EXPECT_NE(refusal("rmsprop").find("does not take sparse gradients"), std::string::npos);
  EXPECT_NE(refusal("sgd-nesterov").find("does not take sparse gradients"), std::string::npos);
  StepOptions clipped;
  clipped.clip_norm = 1.0;
  EXPECT_NE(refusal("sgd", clipped).find("sparse gradients cannot be clipped"), std::string::npos);
  clipped = {};
  clipped.clip_value = 1.0;
  EXPECT_NE(refusal("adagrad", clipped).find("sparse gradients cannot be clipped"), std::string::npos);
}

TEST(SparseGradients, SparseAdamTakesNothingElse) {
  std::string text = kEmbedding;
  text.replace(text.find("False, True"), 11, "False, False");
  StepOptions options;
  options.optimizer = "sparse-adam";
  try {
    run_steps(parse_program(text, "embedding"), platform_named("h200"), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("does not take dense gradients"), std::string::npos);
  }
}

}  // namespace
}  // namespace metaprof
