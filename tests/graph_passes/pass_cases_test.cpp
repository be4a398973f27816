// Passes as text cases (tests/data/graph_executor/passes.cases): a graph goes in, a graph comes out. After every pass
// the graph is verified, and passes that say so do nothing when they are run again. With METAPROF_WRITE_CASES=1 the
// file is written anew with what comes out; read it before you keep it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "step/compiled/ir/text.h"
#include "step/compiled/passes/compile.h"
#include "tests/read_file.h"

namespace metaprof::ir {
namespace {

constexpr const char* kFile = "tests/data/graph_executor/passes.cases";

struct PassCase {
  std::string name, passes = {}, given = {}, expected = {};
};

std::vector<PassCase> read_cases() {
  std::vector<PassCase> cases;
  std::string* part = nullptr;
  std::istringstream text(read_file(kFile));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("case ")) {
      cases.push_back({.name = line.substr(5)});
      part = nullptr;
    } else if (line.starts_with("passes ")) {
      cases.back().passes = line.substr(7);
      part = &cases.back().given;
    } else if (line == "becomes") {
      part = &cases.back().expected;
    } else if (part && !line.empty()) {
      *part += line + "\n";
    }
  }
  return cases;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// What comes out: a graph, or the error of a pass.
std::string outcome(const PassCase& one) {
  static const Platform platform = platform_named("h200");
  const PassContext context{.registry = standard_registry(), .platform = platform};
  std::vector<PassRecord> records;
  try {
    const auto graph = parse_graph(one.given, standard_registry());
    for (const std::string& word : words_of(one.passes)) {
      const Pass& pass = pass_named(word);
      run_pass(pass, *graph, context, {}, 1, records);
      const std::string once = to_text(*graph);
      if (!pass.is_idempotent) continue;
      run_pass(pass, *graph, context, {}, 1, records);
      EXPECT_EQ(to_text(*graph), once) << pass.name << " does something when it is run again";
    }
    return to_text(*graph);
  } catch (const Error& error) {
    return fmt::format("error: {}\n", error.what());
  }
}

class Passes : public ::testing::TestWithParam<PassCase> {};

TEST_P(Passes, MakeOfAGraphWhatTheCaseSays) {
  if (std::getenv("METAPROF_WRITE_CASES")) GTEST_SKIP() << "the cases are being written";
  EXPECT_EQ(outcome(GetParam()), GetParam().expected);
}

std::string test_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Passes, ::testing::ValuesIn(read_cases()),
                         [](const auto& info) { return test_name(info.param.name); });

// With METAPROF_WRITE_CASES: what comes of the graphs now becomes what is expected.
void write_cases() {
  std::string text;
  for (const PassCase& one : read_cases())
    text += fmt::format("case {}\npasses {}\n{}becomes\n{}\n", one.name, one.passes, one.given, outcome(one));
  std::ofstream(kFile) << text;
}

TEST(PassCases, AreThereForEveryPass) {
  if (std::getenv("METAPROF_WRITE_CASES")) write_cases();
  const std::vector<PassCase> cases = read_cases();
  EXPECT_GE(cases.size(), 60u);
  std::string all;
  for (const PassCase& one : cases) all += " " + one.passes;
  for (const Pass& pass : passes()) EXPECT_NE(all.find(pass.name), std::string::npos) << pass.name;
}

}  // namespace
}  // namespace metaprof::ir
