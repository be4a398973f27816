// Options of optimizers ("adam-amsgrad-maximize"): what steps take, against the framework's own on the emulated device
// (tests/data/optimizers, by tools/record/record_optimizers.py with PyTorch 2.11), and which words there are.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using nlohmann::json;

constexpr const char* kModel = "tests/data/optimizers/mlp.mp";

struct Steps {
  json added;     ///< what each of three steps has added at its end and at its peak
  json requests;  ///< of the second: bytes, negative where they are given back
};

// The requests of a phase, as the text of a trace has them: "+ STORAGE BYTES CATEGORY …" and "- STORAGE".
json requests_in(const std::string& trace, const std::string& phase) {
  std::map<int64_t, int64_t> bytes;
  json requests = json::array();
  bool inside = false;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# phase ")) inside = line == "# phase " + phase;
    if (!line.starts_with("+ ") && !line.starts_with("- ")) continue;
    std::istringstream fields(line.substr(2));
    int64_t storage = 0;
    fields >> storage;
    if (line[0] == '+' && line.find(" device=") == std::string::npos) fields >> bytes[storage];
    if (inside && bytes[storage] != 0) requests.push_back(line[0] == '+' ? bytes[storage] : -bytes[storage]);
  }
  return requests;
}

Steps run_steps(const std::string& optimizer, const std::string& implementation) {
  const std::string trace =
      std::filesystem::temp_directory_path() / ("metaprof_optimizers_" + std::to_string(getpid()) + ".trace");
  const Outcome outcome =
      run_program("profile " + std::string(kModel) +
                  " --device h200 --framework 2.11 --workspaces none --steps 3 --optimizer " + optimizer +
                  " --optimizer-impl " + implementation + " --json - --write-trace " + trace);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json phases = json::parse(outcome.out)["phases"];
  json steps = json::array();
  for (size_t i = 1; i < phases.size(); ++i) {
    if (phases[i]["phase"] != "optimizer") continue;
    const int64_t before = phases[i - 1]["allocated_bytes"]["current"];
    const json& allocated = phases[i]["allocated_bytes"];
    steps.push_back(
        {allocated["current"].get<int64_t>() - before, allocated["peak"].get<int64_t>() - before});
  }
  Steps found{steps, requests_in(read_file(trace), "optimizer step 1")};
  std::filesystem::remove(trace);
  return found;
}

json steps_of(const std::string& optimizer, const std::string& implementation) {
  return run_steps(optimizer, implementation).added;
}

TEST(Optimizers, TakeWhatTheFrameworksTakeWithTheirOptions) {
  const json recorded = json::parse(read_file("tests/data/optimizers/steps.json"));
  int runs = 0;
  for (const auto& [optimizer, implementations] : recorded["steps"].items())
    for (const auto& [implementation, steps] : implementations.items()) {
      const Steps found = run_steps(optimizer, implementation);
      EXPECT_EQ(found.added, steps) << optimizer << " " << implementation;
      EXPECT_EQ(found.requests, recorded["requests"][optimizer][implementation])
          << optimizer << " " << implementation;
      ++runs;
    }
  EXPECT_EQ(runs, 278);
}

std::vector<std::string> words_of(std::string text) {
  for (char& c : text)
    if (c == ',') c = ' ';
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// Rows "| adam, adamw | -amsgrad, -wd |" of the documentation. Some words are refused for another reason, as the framework
// refuses them: differentiable optimizers cannot write to leaves.
TEST(Optimizers, EachTakesTheDocumentedEndings) {
  std::ifstream page("docs/reference/command_line.md");
  int optimizers = 0;
  for (std::string line; std::getline(page, line);) {
    const size_t middle = line.find(" | -");
    if (!line.starts_with("| ") || middle == line.npos) continue;
    for (const std::string& name : words_of(line.substr(2, middle - 2)))
      for (const std::string& ending : words_of(line.substr(middle + 3, line.size() - middle - 5))) {
        const Outcome outcome =
            run_program(fmt::format("profile {} --workspaces none --optimizer {}{}", kModel, name, ending));
        EXPECT_EQ(outcome.err.find("is not one of"), std::string::npos) << outcome.err;
        ++optimizers;
      }
  }
  EXPECT_EQ(optimizers, 55);
}

TEST(Optimizers, TakeOnlyTheOptionsThatTheyHave) {
  for (const std::string word :
       {"adagrad-capturable", "adam-amsgrad-amsgrad", "adamw-", "sgd-capturable", "-wd"}) {
    const Outcome outcome = run_program("profile " + std::string(kModel) + " --optimizer " + word);
    EXPECT_EQ(outcome.exit_code, 2) << word;
    EXPECT_NE(outcome.err.find("; some with endings, as adamw-amsgrad-wd (docs/reference/command_line.md"),
              std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(steps_of("adam-maximize-amsgrad", "foreach"), steps_of("adam-amsgrad-maximize", "foreach"));
}

// A model's parameters are leaves: the framework's step fails, too.
TEST(Optimizers, AreNotDifferentiableOverLeaves) {
  const Outcome outcome = run_program("profile " + std::string(kModel) + " --optimizer adam-differentiable");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("a leaf that requires grad cannot be written in place"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace metaprof
