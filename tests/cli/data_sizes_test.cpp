// Sizes that follow from data: whose they are, and that an assumption is named.

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using nlohmann::json;

constexpr const char* kMasked = "tests/data/programs/masked.pt2";
constexpr const char* kExperts = "tests/data/programs/experts.pt2";

json profile(const std::string& model, const std::string& options = "") {
  const Outcome outcome =
      run_program("profile " + model + " --workspaces none --steps 1 --json - " + options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out);
}

int64_t forward_flops(const json& report) { return report["flops"]["forward"].get<int64_t>(); }

// [16,8]·[8,4], then as many rows as the mask finds ·[4,2]: 2·16·8·4 + 2·u0·4·2, and u0 is at most 16.
TEST(SizesByData, AMaskFindsWhatTheUserSaysOrAtMostEverything) {
  EXPECT_EQ(forward_flops(profile(kMasked)), 1024 + 16 * 16);
  EXPECT_EQ(forward_flops(profile(kMasked, "--set u0=4")), 1024 + 16 * 4);
}

// Kept for backward: the rows found, f32[u0,4], and what does not depend on them.
TEST(SizesByData, DecideWhatIsSaved) {
  const auto saved = [](const std::string& options) {
    return profile(kMasked, options)["saved"]["bytes"].get<int64_t>();
  };
  EXPECT_EQ(saved("--set u0=16") - saved("--set u0=4"), 12 * 4 * 4);
}

// Two of four experts per token, twelve tokens: 24 places, 6 for each. The router's product is 2·12·8·4, each of the
// eight products of experts 2·6·8·8.
TEST(SizesByData, ExpertsGetEvenShares) {
  EXPECT_EQ(forward_flops(profile(kExperts)), 2 * 12 * 8 * 4 + 8 * (2 * 6 * 8 * 8));
  const Outcome outcome = run_program("profile " + std::string(kExperts) + " --workspaces none");
  EXPECT_NE(outcome.err.find(
                "the size u0 depends on data: 6 is taken, one of 4 even shares of 24; give another with "
                "--set u0=VALUE"),
            std::string::npos)
      << outcome.err;
}

TEST(SizesByData, AnAssumptionIsNamedWithItsShare) {
  const json rows = profile(kMasked)["unmodelled"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["op"], "aten::index.Tensor");
  EXPECT_EQ(rows[0]["why"], "size follows from data");
  EXPECT_GT(rows[0]["share_of_output_bytes"].get<double>(), 0);
  EXPECT_TRUE(profile(kMasked, "--set u0=4")["unmodelled"].empty());
}

TEST(SizesByData, StrictRefusesAnAssumption) {
  const Outcome outcome = run_program("profile " + std::string(kMasked) + " --workspaces none --strict");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(
      outcome.err.find("aten::index.Tensor (module ''): the size u0 depends on data: its largest value 16 is "
                       "taken; give another with --set u0=VALUE; or leave out --strict"),
      std::string::npos)
      << outcome.err;
  EXPECT_EQ(
      run_program("profile " + std::string(kMasked) + " --workspaces none --strict --set u0=4").exit_code, 0);
}

}  // namespace
}  // namespace metaprof
