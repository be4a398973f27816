// An epoch of batches of different lengths: what a program that trains on them measured, step by step, on one allocator.

#include "estimate/epoch/epoch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "estimate/prepare/memory_limit.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

constexpr const char* kLengths = "tests/data/lengths/lengths.txt";

RunOptions l40s() {
  RunOptions options;
  options.device = "l40s";
  options.framework = "2.11";
  return options;
}

std::vector<std::vector<std::string>> recorded() {
  std::vector<std::vector<std::string>> rows;
  std::istringstream file(read_file("tests/data/lengths/recorded.csv"));
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    auto& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

EpochReport report_of(const Model& model, const RunOptions& options, const EpochOptions& asked,
                      EpochChanges changes = EpochChanges::left_out) {
  WorkspacePlanners planners;
  return run_epoch(model, options, asked, planners, changes);
}

// The program kept the batch that it had while it moved the next one; so do the steps here.
TEST(Epoch, IsWhatAProgramMeasured) {
  const Model model = read_model("gpt2");
  for (const std::vector<std::string>& row : recorded()) {
    SCOPED_TRACE(testing::PrintToString(row));
    RunOptions options = l40s();
    options.context = "none";
    options.batch = std::stoi(row[0]);
    options.step.accumulate = std::stoi(row[1]);
    options.memory = row[2];
    const EpochRun run = report_of(model, options, {.lengths = kLengths}).run;
    if (row[3] == "ended") {
      ASSERT_TRUE(run.ended);
      EXPECT_EQ(run.ended->step, std::stoll(row[4]));
      continue;
    }
    EXPECT_FALSE(run.ended);
    const OverSteps& found = row[3] == "allocated" ? run.allocated : run.reserved;
    EXPECT_EQ(found.largest.count, std::stoll(row[4]));
    EXPECT_EQ(found.step, std::stoll(row[5]));
    EXPECT_EQ(found.percentile_99.count, std::stoll(row[6]));
    // In one step of one row a small block is another: 1,024 bytes of 4.4 GB.
    EXPECT_NEAR(static_cast<double>(found.mean.count), std::stod(row[7]), 20);
  }
}

// Steps of one shape are those of a run without lengths.
TEST(Epoch, OfEqualLengthsIsARunOfSteps) {
  const Model model = read_model("gpt2");
  for (const int accumulate : {1, 2}) {
    RunOptions options = l40s();
    options.batch = 2;
    options.step.accumulate = accumulate;
    const EpochRun epoch = report_of(model, options, {.lengths = "100:16"}).run;
    options.sequence = 100;
    options.step.steps = 8 / accumulate;
    const Phases phases = estimate(model, options).report.memory.phases;
    EXPECT_EQ(epoch.steps, options.step.steps);
    // A loop over batches holds the batch before while it makes the next: two tensors of 200 positions, for which the
    // pool of small blocks may need one more segment.
    const int64_t more = epoch.reserved.largest.count - phases.peak.reserved_bytes.peak;
    EXPECT_TRUE(more == 0 || more == int64_t{2} << 20) << more;
    EXPECT_LE(epoch.allocated.largest.count - phases.peak.allocated_bytes.peak, 2 * 2048);
    EXPECT_GE(epoch.allocated.largest.count, phases.peak.allocated_bytes.peak);
  }
}

// Measured on an L40S: PEFT's fine-tunings of Llama 3.2 3B on MetaMathQA, batches of 4 padded to at most 768 tokens, buckets
// of 20, empty_cache() every 10 steps, 5,000 steps (huggingface/peft, method_comparison/MetaMathQA/results). The largest
// reserved memory is that of the longest batches, whatever the other lengths are.
TEST(Epoch, ReservesWhatWasMeasuredOnAnL40S) {
  const Model model = read_model("llama-3.2-3b");
  for (const auto& [rank, measured] : {std::pair(32, 22292725760.0), {64, 22561161216.0}}) {
    RunOptions options = l40s();
    options.framework = "2.13";
    options.batch = 4;
    options.step.precision = Precision::bf16;
    options.step.clip_norm = 1;
    options.lora = "r=" + std::to_string(rank) + ",targets=q_proj,v_proj";
    options.loss = "transformers";
    const EpochOptions asked{.lengths = "768:40,400:400,200:400", .bucket = 20, .empty_cache_every = 10};
    const double reserved = static_cast<double>(report_of(model, options, asked).run.reserved.largest.count);
    EXPECT_NEAR(reserved / measured, 1, 0.0034) << rank;
  }
}

TEST(Epoch, ChangesAreTriedAndThoseThatFitAreTheFix) {
  const Model model = read_model("gpt2");
  RunOptions options = l40s();
  options.batch = 8;
  options.memory = "15GiB";
  WorkspacePlanners planners;
  const ProfileReport report = estimate_epoch(model, options, {.lengths = kLengths}, planners,
                                              StepsToRun::until_alike, EpochChanges::tried)
                                   .report;
  ASSERT_TRUE(report.epoch && report.epoch->run.ended && report.epoch->without_limit);
  EXPECT_FALSE(verdict_of(report).fits);
  EXPECT_EQ(verdict_of(report).reserved.count, report.epoch->without_limit->reserved.largest.count);
  const std::vector<EpochChange>& changes = report.epoch->changes;
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[0].change, "the largest batch first");
  EXPECT_EQ(changes[1].change, "--alloc-conf expandable_segments:True");
  EXPECT_EQ(changes[2].change, "--bucket 50");
  EXPECT_TRUE(changes[3].change.starts_with("--max-tokens "));
  EXPECT_LT(changes[2].padding, report.epoch->padding);
  const auto fits = std::ranges::find_if(changes, &EpochChange::fits);
  ASSERT_NE(fits, changes.end());
  EXPECT_TRUE(report.fix.starts_with(fits->change + " → ")) << report.fix;
}

TEST(Epoch, EmptyingTheCacheGivesMemoryBack) {
  const Model model = read_model("gpt2");
  RunOptions options = l40s();
  options.batch = 4;
  const EpochRun kept = report_of(model, options, {.lengths = kLengths}).run;
  const EpochRun emptied = report_of(model, options, {.lengths = kLengths, .empty_cache_every = 1}).run;
  EXPECT_LT(emptied.reserved.mean.count, kept.reserved.mean.count);
}

TEST(Batches, AreMadeOfSamples) {
  const auto made = [](const EpochOptions& options, int64_t samples) {
    return batches_of(read_lengths(options.lengths), options, samples);
  };
  using Shapes = std::vector<BatchShape>;
  EXPECT_EQ(made({.lengths = "5 9 3, 4 7"}, 2), (Shapes{{2, 9}, {2, 4}, {1, 7}}));
  EXPECT_EQ(made({.lengths = "[5, 9, 3, 4, 7]"}, 2), (Shapes{{2, 9}, {2, 4}, {1, 7}}));
  EXPECT_EQ(made({.lengths = "8x512 4x1024"}, 99), (Shapes{{8, 512}, {4, 1024}}));
  EXPECT_EQ(made({.lengths = "5 9 3 4 7 1", .bucket = 2}, 2), (Shapes{{2, 9}, {2, 4}, {2, 7}}));
  EXPECT_EQ(made({.lengths = "5 9 3 4 7 1", .bucket = 3}, 2), (Shapes{{2, 9}, {2, 5}, {2, 3}}));
  EXPECT_EQ(made({.lengths = "5 9 3 4 7", .max_tokens = 18}, 2), (Shapes{{2, 9}, {2, 4}, {1, 7}}));
  EXPECT_EQ(made({.lengths = "5 5 5 5", .max_tokens = 15}, 1), (Shapes{{3, 5}, {1, 5}}));
  EXPECT_EQ(made({.lengths = "5 9 [3]"}, 3), (Shapes{{3, 9}}));
}

TEST(Batches, ComeFromFilesWithComments) {
  const std::string file = testing::TempDir() + "lengths.txt";
  std::ofstream(file) << "# tokens of each sample\n5 9 # the longest is 9\n3\n";
  EXPECT_EQ(read_lengths(file).samples, (std::vector<int64_t>{5, 9, 3}));
}

// A histogram is drawn in some order, always in the same one.
TEST(Batches, OfAHistogramAreDrawn) {
  const Lengths lengths = read_lengths("10:50,90:50");
  EXPECT_EQ(lengths.samples.size(), 100U);
  EXPECT_EQ(std::accumulate(lengths.samples.begin(), lengths.samples.end(), int64_t{0}), 5000);
  EXPECT_FALSE(std::ranges::is_sorted(lengths.samples));
  EXPECT_EQ(lengths.samples, read_lengths("10:50,90:50").samples);
}

TEST(Batches, PaddingIsAShareOfTheTokens) {
  const Lengths lengths = read_lengths("10 30");
  EXPECT_DOUBLE_EQ(padding_of(lengths, {{2, 30}}), 1 - 40.0 / 60);
  EXPECT_DOUBLE_EQ(padding_of(lengths, {{1, 10}, {1, 30}}), 0);
}

}  // namespace
}  // namespace metaprof
