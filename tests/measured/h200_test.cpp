// Against what a real card did: tests/measured/h200/README.md.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "estimate/compare/check.h"
#include "tests/evidence_folder.h"
#include "validation/allocator/rerun_allocations.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

const fs::path kMeasured = "tests/measured/h200";

// Steps that differ, with the reason.
std::map<std::string, std::string> not_equal() {
  std::map<std::string, std::string> out;
  std::ifstream file(kMeasured / "not_equal.txt");
  for (std::string line; std::getline(file, line);) {
    std::string name, reason;
    if (line.starts_with('#') || !(std::istringstream(line) >> name >> reason)) continue;
    out.emplace(name, reason);
  }
  return out;
}

// Given where the driver put segments, the allocator does what the real one did: each address, segment and statistic.
TEST(MeasuredOnH200, TheAllocatorRepeatsEveryStep) {
  std::vector<std::string> logs;
  for (const auto& entry : fs::directory_iterator(kMeasured / "steps"))
    if (entry.path().string().ends_with(".log.gz")) logs.push_back(entry.path().string());
  const RerunResult result = rerun_allocations(logs);
  EXPECT_EQ(result.recordings, 219u);
  EXPECT_EQ(result.equal, result.recordings);
  for (const RerunDifference& d : result.differences)
    ADD_FAILURE() << d.file << ":" << d.line << " " << d.what << ": " << d.expected << " / " << d.got;
}

// Estimates from exports, without asking cuDNN. A step that is listed and is equal must leave the list.
TEST(MeasuredOnH200, StepsAreEqualButForTheListedOnes) {
  const EvidenceFolder evidence = evidence_folder();
  CheckOptions options;
  options.models = evidence.models.string();
  options.workspaces_given = true;
  options.run.workspaces = "none";
  for (const auto& entry : fs::directory_iterator(kMeasured / "steps")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    // The checkout has one export of each model, of its usual size: no "gpt2.b8.s1024".
    static const std::regex other_size("\\.[bsi][0-9]+(\\.|$)");
    const bool usual = !std::regex_search(name, other_size);
    if (evidence.whole || usual) options.measurements.push_back(entry.path().string());
  }
  const std::map<std::string, std::string> listed = not_equal();
  size_t equal = 0;
  for (const CheckResult& result : check(options).measurements) {
    const std::string name = fs::path(result.recording).stem().string();
    const bool is_equal = result.exact_phases == result.phases;
    equal += is_equal;
    const auto entry = listed.find(name);
    EXPECT_EQ(is_equal, entry == listed.end())
        << name << ": " << result.exact_phases << " of " << result.phases
        << " phases are equal; listed: " << (entry == listed.end() ? "no" : entry->second);
  }
  EXPECT_EQ(equal, evidence.whole ? 115u : 109u);
}

}  // namespace
}  // namespace metaprof
