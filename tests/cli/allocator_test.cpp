#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = "tests/data/recordings/mlp.log.gz";

class AllocatorCommand : public testing::Test {
 protected:
  AllocatorCommand() : folder_(testing::TempDir() + "metaprof_allocator_" + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~AllocatorCommand() override { fs::remove_all(folder_); }

  // The recording mlp with another peak in its first phase.
  std::string with_another_peak() {
    fs::copy_file(kMlp, folder_ / "mlp.log.gz");
    nlohmann::json head = nlohmann::json::parse(read_file("tests/data/recordings/mlp.json"));
    head["phases"][0]["reserved_bytes"]["peak"] = 1;
    std::ofstream(folder_ / "mlp.json") << head;
    return (folder_ / "mlp.log.gz").string();
  }

  fs::path folder_;
};

TEST_F(AllocatorCommand, SaysHowManyRecordingsAreEqual) {
  const Outcome outcome =
      run_program("allocator --replay " + kMlp + " tests/data/recordings/gpt2.mem1000.log.gz");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "2 of 2 recordings equal (359 requests, 15 phases)\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(AllocatorCommand, WritesJson) {
  const std::string file = (folder_ / "result.json").string();
  EXPECT_EQ(run_program("allocator --replay " + kMlp + " --json " + file).exit_code, 0);
  const nlohmann::json result = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(result["schema"], "metaprof.allocator_replay");
  EXPECT_EQ(result["schema_version"], 1);
  EXPECT_EQ(result["recordings"], 1);
  EXPECT_EQ(result["equal"], 1);
  EXPECT_EQ(result["phases_ended_early"], 0);
  EXPECT_TRUE(result["differences"].empty());
}

TEST_F(AllocatorCommand, DifferencesGiveExitCodeOne) {
  const std::string log = with_another_peak();
  const Outcome text = run_program("allocator --replay " + log + " " + kMlp);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.out.find(": reserved_bytes.all.peak of phase 'setup': recorded 1, got "), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("1 of 2 recordings equal"), std::string::npos);

  const Outcome json = run_program("allocator --json - --replay " + log);
  EXPECT_EQ(json.exit_code, 1);
  const nlohmann::json result = nlohmann::json::parse(json.out);  // nothing else on stdout
  EXPECT_EQ(result["equal"], 0);
  ASSERT_EQ(result["differences"].size(), 1u);
  EXPECT_EQ(result["differences"][0]["file"], log);
  EXPECT_EQ(result["differences"][0]["what"], "reserved_bytes.all.peak of phase 'setup'");
  EXPECT_EQ(result["differences"][0]["expected"], "1");
}

TEST_F(AllocatorCommand, BadInputIsRefused) {
  expect_refusal("allocator --replay none.log.gz", "none.log.gz: no such file");
  expect_refusal("allocator", "--replay is required ('metaprof allocator --help' shows the options)");
  expect_refusal_with("allocator --replay " + kMlp + " --json " + (folder_ / "no" / "x.json").string(),
                      {"x.json"});
}

}  // namespace
}  // namespace metaprof
