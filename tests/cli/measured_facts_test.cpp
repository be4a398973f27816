// Models against facts that were measured on PyTorch 2.11's real dispatch (tests/data/models/*.json, written
// by running the module): parameters, buffers, ties, FLOPs by the framework's counter, unique saved storages.
// Equal to the byte, also by operator and by autograd node.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using nlohmann::json;

struct Case {
  std::string model, precision;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model << " " << c.precision; }

json without_zeros(json by_op) {
  for (auto it = by_op.begin(); it != by_op.end();) {
    const bool zero = (*it)["forward"] == 0 && (*it)["backward"] == 0;
    it = zero ? by_op.erase(it) : std::next(it);
  }
  return by_op;
}

class MeasuredFacts : public testing::TestWithParam<Case> {
 protected:
  static json read(const std::string& path) { return json::parse(read_file(path)); }
};

TEST_P(MeasuredFacts, AreReproduced) {
  const std::string path = "tests/data/models/" + GetParam().model;
  const json facts = read(path + ".json");
  const json& measured = facts["measure"][GetParam().precision];
  const Outcome outcome = run_program(
      "profile " + path + ".pt2 --optimizer none --steps 1 --json - --precision " + GetParam().precision);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);

  if (GetParam().precision == "fp32") {
    for (const char* key : {"count", "bytes", "trainable_count", "trainable_bytes", "tied"})
      EXPECT_EQ(report["parameters"][key], facts["parameters"][key]) << key;
    for (const char* key : {"count", "bytes"})
      EXPECT_EQ(report["buffers"][key], facts["buffers"][key]) << key;
  }
  EXPECT_EQ(report["flops"]["forward"], measured["flops_forward"]);
  EXPECT_EQ(report["flops"]["backward"], measured["flops_backward"]);
  json by_op = report["flops"]["by_op"];
  for (json& row : by_op) row = {{"forward", row["forward"]}, {"backward", row["backward"]}};
  EXPECT_EQ(without_zeros(by_op), without_zeros(measured["flops_by_op"]));

  EXPECT_EQ(report["saved"]["count"], measured["saved"]["count"]);
  EXPECT_EQ(report["saved"]["bytes"], measured["saved"]["bytes"]);
  auto by_node = [](const json& rows) {
    json map;
    for (const json& row : rows) map[row["node"].get<std::string>()] = {row["count"], row["bytes"]};
    return map;
  };
  EXPECT_EQ(by_node(report["saved"]["by_node"]), by_node(measured["saved"]["by_node"]));
  EXPECT_TRUE(report["unmodelled"].empty());
}

INSTANTIATE_TEST_SUITE_P(, MeasuredFacts,
                         testing::Values(Case{"resnet18", "fp32"}, Case{"resnet18", "amp-bf16"},
                                         Case{"gpt2", "fp32"}, Case{"gpt2", "amp-bf16"}));

}  // namespace
}  // namespace metaprof
