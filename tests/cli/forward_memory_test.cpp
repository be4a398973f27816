// docs/evidence/accuracy.md: what a forward adds to device memory, against recordings, to the byte.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) text.insert(static_cast<size_t>(i), ",");
  return text;
}

int64_t added_by_forward(const Json& report, const char* field) {
  const Json& phases = report["phases"];
  return phases[1][field]["current"].get<int64_t>() - phases[0][field]["current"].get<int64_t>();
}

class ForwardMemory : public testing::TestWithParam<std::string> {};

TEST_P(ForwardMemory, IsThatOfTheRecording) {
  const EvidenceFolder evidence = part_of_the_evidence();
  const std::string model = GetParam();
  std::string recorded = model;
  std::replace(recorded.begin(), recorded.end(), '_', '-');
  const std::string recording_file = (evidence.steps / (recorded + ".json")).string();

  const Outcome outcome =
      run_program("profile " + (evidence.models / (model + ".pt2")).string() + " --workspaces none --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json estimate = Json::parse(outcome.out), recording = Json::parse(read_file(recording_file));
  for (const char* field : {"allocated_bytes", "requested_bytes"}) {
    EXPECT_EQ(added_by_forward(estimate, field), added_by_forward(recording, field)) << field;
    for (size_t i = 0; i < recording["phases"].size(); ++i)
      EXPECT_EQ(estimate["phases"][i][field], recording["phases"][i][field]) << field << " of phase " << i;
  }
  // The page says so.
  const std::string page = read_file("docs/evidence/accuracy.md");
  const size_t row = page.find("| `" + model + "` |");
  ASSERT_NE(row, std::string::npos);
  const std::string number = with_commas(added_by_forward(recording, "allocated_bytes"));
  EXPECT_NE(page.substr(row, page.find('\n', row) - row).find("| " + number + " | " + number + " | 0 |"),
            std::string::npos)
      << number;
}

INSTANTIATE_TEST_SUITE_P(, ForwardMemory,
                         testing::Values("resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
                                         "convnext_tiny", "convnext_small", "convnext_base"));

}  // namespace
}  // namespace metaprof
