// Versions of PyTorch on the command line.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

constexpr const char* kMlp = "tests/data/models/mlp.pt2";

std::string profile_of(const std::string& options, const std::string& model = kMlp) {
  return run_program("profile " + model + " --workspaces none " + options).out;
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

std::string reserved_of(const std::string& options) {
  const std::string text = profile_of(options);
  return text.substr(0, text.find(" + "));
}

// The model was written by 2.11, which keeps 32 MiB of workspace for each thread's products; 2.15 gives them back.
TEST(FrameworkOption, TheDefaultIsTheVersionThatWroteTheModel) {
  EXPECT_TRUE(says(profile_of(""), "PyTorch 2.11.0, which wrote the model\n"));
  EXPECT_TRUE(says(profile_of("--framework 2.15"), "PyTorch 2.15.0, as asked\n"));
  EXPECT_TRUE(says(profile_of("--framework 2.7.1+cu126"), "PyTorch 2.7.1, as asked\n"));
  EXPECT_EQ(reserved_of("--framework 2.11"), reserved_of(""));
  EXPECT_NE(reserved_of("--framework 2.15"), reserved_of(""));
  EXPECT_EQ(reserved_of("--framework 2.15 --env TORCH_CUBLAS_WORKSPACE_CACHE=1"),
            reserved_of("--framework 2.14"));
}

// PYTORCH_ALLOC_CONF is read from 2.10 on, PYTORCH_CUDA_ALLOC_CONF by all.
TEST(FrameworkOption, VariablesOfTheAllocatorAreReadByTheVersionsThatReadThem) {
  const std::string new_name = " --env PYTORCH_ALLOC_CONF=expandable_segments:True",
                    old_name = " --env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  for (const char* version : {"--framework 2.6", "--framework 2.9"}) {
    EXPECT_EQ(reserved_of(version + new_name), reserved_of(version)) << version;
    EXPECT_NE(reserved_of(version + old_name), reserved_of(version)) << version;
  }
  for (const char* version : {"--framework 2.10", "--framework 2.15"}) {
    EXPECT_NE(reserved_of(version + new_name), reserved_of(version)) << version;
    EXPECT_EQ(reserved_of(version + new_name), reserved_of(version + old_name)) << version;
  }
}

TEST(FrameworkOption, ANewerVersionHasTheNewestRules) {
  const Outcome newer = run_program("profile " + std::string(kMlp) + " --workspaces none --framework 2.16");
  EXPECT_EQ(newer.exit_code, 0);
  EXPECT_EQ(newer.err,
            "metaprof: warning: PyTorch 2.16.0 is newer than 2.15, the newest version that was compared; the "
            "rules of "
            "2.15 are taken\n");
  EXPECT_EQ(reserved_of("--framework 2.16"), reserved_of("--framework 2.15"));
}

TEST(FrameworkOption, WhatIsNoneIsRefused) {
  for (const char* command : {"profile", "fit", "advise", "plan-input"}) {
    expect_refusal(command + std::string(" ") + kMlp + " --framework 2.5",
                   "--framework: PyTorch 2.5 is not known; the oldest version that is known is 2.6.0");
    expect_refusal(command + std::string(" ") + kMlp + " --framework new",
                   "--framework: 'new' is no version of PyTorch; expected one such as 2.15.0");
  }
  // A combination of a sweep that cannot be run has an error in its row.
  const Outcome sweep =
      run_program("sweep " + std::string(kMlp) + " --workspaces none --framework 2.5,2.15 --csv -");
  EXPECT_EQ(sweep.exit_code, 1);
  EXPECT_TRUE(says(sweep.out, "--framework: PyTorch 2.5 is not known;")) << sweep.out;
  expect_refusal("ops --framework 2.15", "--only, --framework and --verbose belong to --replay");
}

// A program as text may say its version, too.
TEST(FrameworkOption, OfAProgramAsText) {
  const std::string file = testing::TempDir() + "framework_" + std::to_string(getpid()) + ".mp";
  const auto header = [&](const std::string& line) {
    std::ofstream(file) << "metaprof program 1\n"
                        << line << "input x = %x: f32[2]\n%y: f32[2] = aten::sin(%x)\n"
                        << "output = %y\n";
    return run_program("profile " + file + " --mode no-grad");
  };
  EXPECT_TRUE(says(header("framework 2.9.1\n").out, "PyTorch 2.9.1, which wrote the model\n"));
  EXPECT_TRUE(says(header("").out, "PyTorch 2.15.0, the newest that is known\n"));
  EXPECT_TRUE(
      says(header("framework 2.5.1\n").err, "PyTorch 2.5.1, which wrote the model, is older than 2.6"));
  EXPECT_TRUE(says(header("framework nightly\n").err,
                   "the model names 'nightly' as the PyTorch which wrote the model"));
  std::filesystem::remove(file);
}

// A captured program says what the environment of its run was. 2.11's cuBLAS keeps 32 MiB in forward and in backward each;
// ":16:8" are 128 KiB.
TEST(FrameworkOption, ACapturedProgramHasTheEnvironmentOfItsRun) {
  const std::string file = testing::TempDir() + "metaprof_environment_" + std::to_string(getpid()) + ".mp";
  ASSERT_EQ(run_program("profile tests/data/captured/checkpoints.mp --write-program " + file).exit_code, 0);
  const std::string text = read_file(file);
  const size_t behind = text.find('\n', text.find("\ncaptured ") + 1) + 1;
  const auto workspaces = [&](const std::string& lines, const std::string& options) {
    std::ofstream(file) << text.substr(0, behind) << lines << text.substr(behind);
    const Outcome outcome = run_program("profile " + file + " --workspaces none --json - " + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["peak"]["allocated_bytes"].get<int64_t>();
  };
  const std::string little = "environment CUBLAS_WORKSPACE_CONFIG \":16:8\"\n";
  const int64_t usual = workspaces("", "");
  EXPECT_LT(workspaces(little, ""), usual);
  EXPECT_EQ(workspaces(little, ""), workspaces("", "--env CUBLAS_WORKSPACE_CONFIG=:16:8"));
  EXPECT_EQ(workspaces(little, "--env CUBLAS_WORKSPACE_CONFIG=:4096:8"), usual) << "--env outranks the run's";
  std::ofstream(file) << "metaprof program 1\nenvironment A B\n";
  expect_refusal("profile " + file, file + ":2: 'environment' stands behind 'captured'");
  std::filesystem::remove(file);
}

TEST(FrameworkOption, WithoutItAConfigurationRunsWithTheNewestAndACapturedProgramWithItsOwn) {
  EXPECT_TRUE(says(profile_of("", "tests/data/configs/exports/gpt2.json"),
                   "PyTorch 2.15.0, the newest that is known\n"));
  EXPECT_TRUE(
      says(profile_of("", "tests/data/captured/checkpoints.mp"), "PyTorch 2.11.0, which ran the program\n"));
}

// Programs of tools/record/version_programs.py, exported by each version (schema 7 and 8, archives of two kinds) and run by it on
// the emulated device (tools/record/record_version.sh): they load, and the estimates are equal to the byte.
TEST(Versions, ExportsOfEachLoadAndAreAsTheyRan) {
  int versions = 0;
  for (const auto& folder : std::filesystem::directory_iterator("tests/data/versions")) {
    const std::string version = folder.path().filename().string();
    SCOPED_TRACE(version);
    for (const auto& run : std::filesystem::directory_iterator(folder.path())) {
      if (run.path().extension() == ".pt2") {
        EXPECT_TRUE(
            says(profile_of("", run.path().string()), "PyTorch " + version + ", which wrote the model\n"));
      }
      if (run.path().extension() != ".json") continue;
      const std::string name = run.path().filename().string();
      const std::string model = (folder.path() / (name.substr(0, name.find('.')) + ".pt2")).string();
      const Outcome check =
          run_program("check " + model + " --against " + run.path().string() + " --tolerance 0%");
      EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
      EXPECT_TRUE(says(check.out, "allocated and requested bytes of every phase equal: 1 of 1")) << check.out;
      EXPECT_TRUE(says(check.out, "peak of reserved bytes equal: 1 of 1")) << check.out;
    }
    ++versions;
  }
  EXPECT_GE(versions, 10);
}

// Five norms of 4 · 256 rows of 256: 2.8 multiplies by the weight in fp32, and each keeps 1 MiB for that, not 512 KiB.
TEST(Versions, RmsNormOf28KeepsItsResultIn32Bits) {
  const Outcome check = run_program(
      "check tests/data/versions/2.12.0/grouped.pt2 --against tests/data/recordings-2.8/grouped.bf16.json "
      "--tolerance 0%");
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_TRUE(says(check.out, "worst peak error 0.000 %")) << check.out;
  EXPECT_TRUE(says(check.out, "peak of reserved bytes equal: 1 of 1")) << check.out;
}

TEST(Frameworks, AreListedWithWhatTheyWereComparedWith) {
  const std::string text = run_program("frameworks").out;
  for (const char* version : {"2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.12.1",
                              "2.13.0", "2.14.1", "2.15.0"})
    EXPECT_TRUE(says(text, version)) << version;
  EXPECT_TRUE(says(text, "57 of 57")) << text;
  const std::string json = run_program("frameworks --json -").out;
  EXPECT_TRUE(says(json, "\"schema\": \"metaprof.frameworks\"") && says(json, "\"newest\": \"2.15.0\""));
}

// docs/evidence/accuracy.md says what the program says.
TEST(Frameworks, ThePageHasTheSameNumbers) {
  const std::string page = read_file("docs/evidence/accuracy.md");
  std::ifstream rows("validation/results/compared_versions.inc");
  int count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    const std::string version = row.substr(2, row.find('"', 2) - 2);
    int steps = 0, equal = 0, reserved = 0;
    ASSERT_EQ(std::sscanf(row.c_str() + row.find(',') + 1, "%d, %d, %d", &steps, &equal, &reserved), 3)
        << row;
    const std::string cells = "| " + version + " | " + std::to_string(steps) + " | " + std::to_string(equal) +
                              " | " + std::to_string(reserved) + " |";
    EXPECT_TRUE(says(page, cells)) << cells;
  }
  EXPECT_EQ(count, 11);
}

}  // namespace
}  // namespace metaprof
