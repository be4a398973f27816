// Models that are known by name: all of them can be built, and those of torchvision are what the framework exported.

#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "estimate/prepare/prepare.h"

namespace metaprof {
namespace {

TEST(BuiltinModels, CanAllBeBuilt) {
  for (const BuiltinName& model : builtin_models()) {
    const Program program = builtin_model(model.name)({.batch = 1, .sequence = 16});
    EXPECT_FALSE(program.graph.nodes.empty()) << model.name;
    EXPECT_EQ(program.name, model.name);
  }
  EXPECT_FALSE(builtin_model("resnet19"));
}

class BuiltinBesideExport : public testing::TestWithParam<const char*> {};

// Every statistic of every phase, saved tensors and FLOPs, at the sizes of the export.
TEST_P(BuiltinBesideExport, TakesTheSame) {
  RunOptions options;
  options.framework = "2.11";
  options.memory = "100TB";
  options.workspaces = "none";
  const Model exported_model = read_model("tests/data/models/" + std::string(GetParam()) + ".pt2");
  const ProfileReport exported = estimate(exported_model, options).report;
  options.batch = static_cast<int>(inputs_of(exported_model.program)[0].sizes[0]);
  const ProfileReport built = estimate(read_model(GetParam(), options), options).report;
  EXPECT_EQ(exported.memory.parameters.all.count, built.memory.parameters.all.count);
  EXPECT_EQ(exported.memory.saved.count, built.memory.saved.count);
  EXPECT_EQ(exported.memory.saved.bytes, built.memory.saved.bytes);
  EXPECT_EQ(exported.counts.total.counted.forward.count, built.counts.total.counted.forward.count);
  EXPECT_EQ(exported.counts.total.counted.backward.count, built.counts.total.counted.backward.count);
  ASSERT_EQ(exported.memory.phases.rows.size(), built.memory.phases.rows.size());
  for (size_t i = 0; i < exported.memory.phases.rows.size(); ++i) {
    const AllocatorNumbers &a = exported.memory.phases.rows[i].numbers,
                           &b = built.memory.phases.rows[i].numbers;
    EXPECT_EQ(a.allocated_bytes.current, b.allocated_bytes.current) << "phase " << i;
    EXPECT_EQ(a.allocated_bytes.peak, b.allocated_bytes.peak) << "phase " << i;
    EXPECT_EQ(a.reserved_bytes.peak, b.reserved_bytes.peak) << "phase " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BuiltinBesideExport,
                         testing::Values("resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
                                         "alexnet", "vgg16"));

}  // namespace
}  // namespace metaprof
