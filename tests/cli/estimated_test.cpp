// Memory whose size only a closed library knows is named.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

using nlohmann::json;

json estimated(const std::string& model) {
  const Outcome outcome =
      run_program("profile " + model + " --workspaces none --steps 1 --optimizer none --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out)["estimated"];
}

TEST(EstimatedMemory, AProductHasNone) { EXPECT_TRUE(estimated("tests/data/models/mlp.pt2").empty()); }

// A reserve and a workspace forward, a workspace for each of two calls backward.
TEST(EstimatedMemory, ARecurrentNetworkHasReserveAndWorkspace) {
  const std::filesystem::path model = evidence_folder().models / "lstm_lm.pt2";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not here";
  std::map<std::string, int64_t> storages;
  for (const json& row : estimated(model.string())) storages[row["op"]] = row["storages"];
  EXPECT_EQ(storages["aten::_cudnn_rnn"], 2);
  EXPECT_EQ(storages["aten::_cudnn_rnn_backward"], 2);
}

}  // namespace
}  // namespace metaprof
