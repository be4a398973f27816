// `metaprof selftest` where no PyTorch is: interpreters are scripts that say what a machine would.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

// An interpreter that says this of the machine, and ends every other program with exit status 3.
std::string interpreter(const std::string& name, const std::string& machine) {
  std::string file = testing::TempDir() + "metaprof_selftest_" + std::to_string(getpid()) + name;
  std::ofstream(file) << "#!/bin/sh\ncase $1 in */machine.py) echo 'a library speaks'; echo '" << machine
                      << "';; *) exit 3;; esac\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

const std::string kMachine = R"({"python": "3.11.7", "torch": "2.11.0+cu130", "cuda": "13.0"})";
const std::string kCard =
    R"({"python": "3.11.7", "torch": "2.11.0+cu130", "cuda": "13.0", "cudnn": 91900, "driver": "580.82.07", )"
    R"("device": {"name": "NVIDIA H200", "memory": 150754820096, "capability": [9, 0], "multiprocessors": 132}})";

TEST(Selftest, WithoutAGpuItSaysSoInOneLine) {
  const std::string python = interpreter("none", kMachine);
  expect_refusal("selftest --gpu --python " + python,
                 "selftest --gpu: PyTorch 2.11.0+cu130 of " + python +
                     " sees no CUDA device on this machine (torch.cuda.is_available() is false)");
}

TEST(Selftest, InterpretersThatCannotBeUsedSayWhy) {
  expect_refusal("selftest --python no-such-python", "--python no-such-python: there is no such program");
  expect_refusal("selftest --python true", "--python true: is no Python that can be used: exit status 0");
  const std::string cpu = interpreter("cpu", R"({"python": "3.11.7", "torch": "2.11.0+cpu", "cuda": null})");
  expect_refusal("selftest --python " + cpu, "--python " + cpu +
                                                 ": PyTorch 2.11.0+cpu is built for the CPU only: install "
                                                 "one that is built with CUDA");
  const std::string none = interpreter(
      "torchless", R"({"python": "3.11.7", "problem": "ModuleNotFoundError: No module named torch"})");
  expect_refusal("selftest --python " + none,
                 "--python " + none + ": PyTorch cannot be used: ModuleNotFoundError: No module named torch");
}

TEST(Selftest, OptionsThatContradict) {
  const std::string python = " --python " + interpreter("options", kCard);
  expect_refusal("selftest --gpu --device h100" + python,
                 "--device has no effect with --gpu, which takes the machine's own device");
  expect_refusal_with("selftest --program resnet" + python,
                      {"--program resnet: there is no such program; there are accumulation_clip, ", "lstm"});
  expect_refusal_with("selftest --json nowhere/selftest.json" + python, {"nowhere"});
  expect_refusal_with("selftest --device h900" + python, {"h900"});
}

// Programs that fail are findings, with their reasons, and the report is written.
TEST(Selftest, ProgramsThatFailAreInTheReport) {
  const std::string file = testing::TempDir() + "metaprof_selftest_" + std::to_string(getpid()) + ".json";
  const Outcome outcome = run_program("selftest --gpu --program lstm --program mlp_sgd --json " + file +
                                      " --python " + interpreter("fails", kCard));
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(
      "real = emulated in every phase: 0 of 2 programs (in every request: 0); real = estimate: 0\n"
      "NVIDIA H200 (140.4 GiB), driver 580.82.07, PyTorch 2.11.0+cu130, cuDNN 9.19.0, Python 3.11.7, "))
      << outcome.out;
  for (const char* side : {"real", "emulated"})
    EXPECT_NE(outcome.out.find(std::string("the ") + side +
                               " run ended with exit status 3: the recorder was not loaded"),
              std::string::npos)
        << outcome.out;
  EXPECT_EQ(
      std::system(
          (METAPROF_PYTHON " tests/validate_json.py reports/schema/selftest.schema.json " + file).c_str()),
      0);
  const Json report = Json::parse(read_file(file));
  EXPECT_EQ(report["device"]["memory"], 150754820096);
  ASSERT_EQ(report["programs"].size(), 2u);
  EXPECT_EQ(report["programs"][0]["problems"].size(), 2u);
  EXPECT_FALSE(report["programs"][0]["equal"]);
  EXPECT_TRUE(report["programs"][0]["phases"].empty());
}

}  // namespace
}  // namespace metaprof
