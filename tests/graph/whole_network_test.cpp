// A step captured as one graph, against recordings of the framework's own capture (tests/data/cudagraphs).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "estimate/cudagraphs.h"
#include "formats/json.h"
#include "tests/evidence_folder.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

CudagraphsOptions recorded_options() {
  CudagraphsOptions options;
  options.run.step.optimizer = "sgd-momentum";
  options.run.workspaces = "none";
  return options;
}

void expect_equal(const Json& recorded, const MemoryStatistics& ours, const std::string& where) {
  EXPECT_EQ(ours.allocated.current, recorded.at("allocated").integer()) << where;
  EXPECT_EQ(ours.allocated.peak, recorded.at("allocated_peak").integer()) << where;
  EXPECT_EQ(ours.reserved.current, recorded.at("reserved").integer()) << where;
  EXPECT_EQ(ours.reserved.peak, recorded.at("reserved_peak").integer()) << where;
  size_t pools = 0;
  recorded.at("segments_by_pool").for_each_member([&](std::string_view name, Json bytes) {
    ++pools;
    bool found = false;
    for (const auto& [pool, ours_bytes] : ours.segments_by_pool) {
      if (fmt::format("({}, {})", pool.first, pool.second) != name) continue;
      EXPECT_EQ(ours_bytes, bytes.integer()) << where << " " << name;
      found = true;
    }
    EXPECT_TRUE(found) << where << " " << name;
  });
  EXPECT_EQ(ours.segments_by_pool.size(), pools) << where;
}

TEST(WholeNetwork, EqualsTheFrameworksOwnCapture) {
  const std::string text = read_file("tests/data/cudagraphs/whole-2.11.json");
  const JsonDocument document(text, "whole-2.11.json");
  size_t compared = 0;
  document.root().at("recordings").for_each_member([&](std::string_view name, Json recorded) {
    const auto file = evidence_folder().models / (std::string(name) + ".pt2");
    if (!std::filesystem::exists(file)) return;
    const CudagraphsReport report = cudagraphs(read_model(file.string()), recorded_options());
    expect_equal(recorded.at("setup"), report.whole_network->setup, std::string(name) + " setup");
    expect_equal(recorded.at("warm"), report.whole_network->warm, std::string(name) + " warm");
    expect_equal(recorded.at("captured"), report.whole_network->captured, std::string(name) + " captured");
    expect_equal(recorded.at("replayed"), report.whole_network->replayed, std::string(name) + " replayed");
    ++compared;
  });
  EXPECT_GE(compared, 16u);
}

// Forwards and backwards that the framework captured in two graphs; recurrent modules it leaves to eager, so that
// other graphs remain.
TEST(TreeOfGraphs, EqualsTheFrameworksOwnTree) {
  const std::string text = read_file("tests/data/cudagraphs/tree-2.11.json");
  const JsonDocument document(text, "tree-2.11.json");
  size_t equal = 0;
  document.root().at("recordings").for_each_member([&](std::string_view name, Json recorded) {
    const auto file = evidence_folder().models / (std::string(name) + ".pt2");
    if (!std::filesystem::exists(file) || name == "lstm_lm" || name == "gru_classifier") return;
    CudagraphsOptions options = recorded_options();
    options.whole_network = false;
    const CudagraphsReport report = cudagraphs(read_model(file.string()), options);
    EXPECT_TRUE(report.all_captured())
        << name << ": " << report.graphs[0].message << report.graphs[1].message;
    const Json counters = recorded.at("counters");
    EXPECT_FALSE(counters.find("cudagraph_skips")) << name;
    EXPECT_EQ(report.tree->counters.non_static_inputs,
              counters.at("cudagraph_recorded_non_static_inputs").integer())
        << name;
    ASSERT_EQ(report.tree->not_modelled, "") << name;
    const MemoryStatistics& memory = report.tree->memory;
    EXPECT_EQ(memory.allocated.current, recorded.at("allocated").integer()) << name;
    EXPECT_EQ(memory.allocated.peak, recorded.at("peak").integer()) << name;
    EXPECT_EQ(memory.reserved.peak, recorded.at("reserved").integer()) << name;
    ++equal;
  });
  EXPECT_GE(equal, 12u);
}

}  // namespace
}  // namespace metaprof
