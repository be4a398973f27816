// Steps captured as one graph, by make_graphed_callables and as a tree of graphs, against recordings of the
// framework's own captures (tests/data/cudagraphs).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "estimate/cudagraphs.h"
#include "formats/json.h"
#include "tests/evidence_folder.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

CudagraphsOptions recorded_options(const std::string& framework) {
  CudagraphsOptions options;
  options.run.step.optimizer = "sgd-momentum";
  options.run.workspaces = "none";
  options.run.framework = framework;
  options.whole_network = options.tree = false;
  return options;
}

// Every model of tests/data/cudagraphs/KIND-VERSION.json whose export is at hand. Returns how many there are.
template <class Check>  // Check(name, model, recorded)
size_t for_each_recording(const std::string& kind, const std::string& framework, const Check& check) {
  const std::string file = kind + "-" + framework + ".json";
  const std::string text = read_file("tests/data/cudagraphs/" + file);
  const JsonDocument document(text, file);
  size_t compared = 0;
  document.root().at("recordings").for_each_member([&](std::string_view name, Json recorded) {
    const auto model = evidence_folder().models / (std::string(name) + ".pt2");
    if (!std::filesystem::exists(model)) return;
    check(std::string(name), read_model(model.string()), recorded);
    ++compared;
  });
  return compared;
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

/// A version of PyTorch, and of how many models there are recordings at least.
struct Recorded {
  const char* framework;
  size_t whole, callables, trees;
};
void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.framework; }

class RecordedVersion : public testing::TestWithParam<Recorded> {
 protected:
  const std::string framework_ = GetParam().framework;
};

TEST_P(RecordedVersion, OneGraphOfTheWholeStepEqualsTheFrameworksOwn) {
  CudagraphsOptions options = recorded_options(framework_);
  options.whole_network = true;
  const size_t compared = for_each_recording(
      "whole", framework_, [&](const std::string& name, const Model& model, const Json& recorded) {
        const WholeNetworkMemory memory = *cudagraphs(model, options).whole_network;
        expect_equal(recorded.at("setup"), memory.setup, name + " setup");
        expect_equal(recorded.at("warm"), memory.warm, name + " warm");
        expect_equal(recorded.at("captured"), memory.captured, name + " captured");
        expect_equal(recorded.at("replayed"), memory.replayed, name + " replayed");
      });
  EXPECT_GE(compared, GetParam().whole);
}

TEST_P(RecordedVersion, GraphedCallablesEqualTheFrameworksOwn) {
  CudagraphsOptions options = recorded_options(framework_);
  options.graphed_callables = true;
  options.tree_steps = 3;
  const size_t compared = for_each_recording(
      "callables", framework_, [&](const std::string& name, const Model& model, const Json& recorded) {
        const GraphedCallablesMemory memory = *cudagraphs(model, options).graphed_callables;
        expect_equal(recorded.at("setup"), memory.setup, name + " setup");
        if (name == "gpt2" && framework_ == "2.11") {
          // A known difference: the gradient of the tied embedding lies in a segment of its own there (148 MiB), in
          // free memory of the pool here. Why is not known; 2.15 is equal.
          EXPECT_EQ(recorded.at("captured").at("reserved").integer() - memory.captured.reserved.current,
                    148 << 20);
          return;
        }
        expect_equal(recorded.at("captured"), memory.captured, name + " captured");
        expect_equal(recorded.at("replayed"), memory.replayed, name + " replayed");
      });
  EXPECT_GE(compared, GetParam().callables);
}

// Recurrent networks are compiled in pieces, and say so.
TEST_P(RecordedVersion, ATreeOfGraphsEqualsTheFrameworksOwn) {
  CudagraphsOptions options = recorded_options(framework_);
  options.tree = true;
  size_t not_modelled = 0;
  const size_t compared = for_each_recording(
      "tree", framework_, [&](const std::string& name, const Model& model, const Json& recorded) {
        const CudagraphsReport report = cudagraphs(model, options);
        EXPECT_TRUE(report.all_captured())
            << name << ": " << report.graphs[0].message << report.graphs[1].message;
        const Json counters = recorded.at("counters");
        EXPECT_FALSE(counters.find("cudagraph_skips")) << name;
        if (name == "lstm_lm" || name == "gru_classifier") {
          EXPECT_NE(report.tree->not_modelled, "") << name;
          ++not_modelled;
          return;
        }
        EXPECT_EQ(report.tree->counters.non_static_inputs,
                  counters.at("cudagraph_recorded_non_static_inputs").integer())
            << name;
        EXPECT_EQ(report.tree->not_modelled, "") << name;
        const MemoryStatistics& memory = report.tree->memory;
        EXPECT_EQ(memory.allocated.current, recorded.at("allocated").integer()) << name;
        EXPECT_EQ(memory.allocated.peak, recorded.at("peak").integer()) << name;
        EXPECT_EQ(memory.reserved.peak, recorded.at("reserved").integer()) << name;
      });
  EXPECT_GE(compared, GetParam().trees);
  EXPECT_LE(not_modelled, 2u);
}

INSTANTIATE_TEST_SUITE_P(Cudagraphs, RecordedVersion,
                         testing::Values(Recorded{"2.11", 16, 4, 16}, Recorded{"2.15", 7, 4, 8}));

}  // namespace
}  // namespace metaprof
