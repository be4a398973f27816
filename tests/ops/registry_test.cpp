#include "meta/op/registry.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"

namespace metaprof {
namespace {

constexpr FrameworkVersion k2_8 = {.major = 2, .minor = 8, .patch = 0};
constexpr FrameworkVersion k2_9 = {.major = 2, .minor = 9, .patch = 0};

Op named(std::string_view node, FrameworkRange versions) {
  Op op = composite_of("aten::made_up(Tensor self) -> Tensor", "self", [](Call&) {}, {});
  op.facts.node = node;
  op.facts.versions = versions;
  return op;
}

// One name, two records: each version finds the one that holds in it.
TEST(Registry, HasTheRecordsOfItsVersion) {
  const Op records[] = {named("Old", {.before = k2_9}), named("New", {.since = k2_9})};
  const Records tables[] = {records};
  EXPECT_EQ(Registry(tables, k2_8).find("aten::made_up")->node_name, "Old");
  EXPECT_EQ(Registry(tables, k2_9).find("aten::made_up")->node_name, "New");
}

TEST(Registry, RefusesTwoRecordsThatHoldAtOnce) {
  const Op records[] = {named("Old", {}), named("New", {.since = k2_9})};
  const Records tables[] = {records};
  EXPECT_EQ(Registry(tables, k2_8).operators().size(), 1u);
  EXPECT_THROW(Registry(tables, k2_9), Error);
}

TEST(Registry, IsMadeOnceForVersionsOfTheSameRecords) {
  EXPECT_EQ(&registry_for(kOldestFramework), &registry_for(kOldestFramework));
  EXPECT_EQ(&registry_for(FrameworkVersion{}), &standard_registry());
}

// "self: reads …", a row of a derivative table in a line.
std::vector<std::string> rows_of(std::string_view name) {
  std::vector<std::string> lines;
  for (const Derivatives::Row& row : standard_registry().find(name)->record.derivatives.rows()) {
    std::string line;
    for (const Name& of : row.of) line += std::string(of.text) + " ";
    line += "reads";
    for (const Name& read : row.reads) line += " " + std::string(read.text);
    lines.push_back(line);
  }
  return lines;
}

// tools/autograd/derivatives.yaml, mse_loss_backward: each slope is that of `grad * grad_output` at its own argument.
TEST(Registry, ASecondDerivativeReadsWhatTheFrameworksTableReads) {
  EXPECT_EQ(rows_of("aten::mse_loss_backward"),
            (std::vector<std::string>{"grad_output reads self target", "self reads grad_output self",
                                      "target reads grad_output target"}));
}

}  // namespace
}  // namespace metaprof
