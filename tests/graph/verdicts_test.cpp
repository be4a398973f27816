// Verdicts on small programs, for people to read (verdicts.case beside this file):
//
//   case TITLE
//   # a remark
//   … lines of a program (docs/reference/program.md), without the first
//   expect captured                 the verdict, as `metaprof cudagraphs` says it; or: expect skipped: …
//   expect input x copied 24 a      an input: fixed, or the bytes that are copied; the kind of mutation
//   expect backward captured        of the backward of a step
//   policy skip dynamic sizes
//   policy made earlier h           an input that an earlier captured graph has made

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "program/text/text.h"
#include "step/cudagraphs/eligibility.h"
#include "step/whole_network.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

struct Case {
  std::string title, program = "metaprof program 1\n";
  std::vector<std::string> expected;
  CapturePolicy policy;
  int line = 0;
};

std::vector<Case> read_cases(const std::string& file) {
  std::vector<Case> cases;
  std::istringstream text(read_file(file));
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.starts_with("case ")) {
      cases.push_back({.title = line.substr(5), .expected = {}, .policy = {}, .line = number});
    } else if (line.starts_with("expect ")) {
      cases.back().expected.push_back(line.substr(7));
    } else if (line == "policy skip dynamic sizes") {
      cases.back().policy.skip_dynamic_sizes = true;
    } else if (line.starts_with("policy made earlier ")) {
      cases.back().policy.earlier_outputs.insert(line.substr(20));
    } else if (!cases.empty()) {
      cases.back().program += line + "\n";
    }
  }
  return cases;
}

std::string shown(const CaptureInput& input) {
  const std::string memory = input.fixed ? "fixed" : fmt::format("copied {}", input.copied.count);
  return fmt::format("input {} {} {}", input.name, memory, letter_of(input.mutation));
}

// As metaprof cudagraphs judges it: of a step that is run.
std::string backward_verdict(const Program& program) {
  StepOptions options;
  options.optimizer = "none";
  const WholeNetworkTrace run =
      run_whole_network(program, program, platform_named("h200"), options, /*warmup=*/1);
  return to_text(judge_run(run.trace, Phase::backward, standard_registry()));
}

void check(const Case& tried) {
  const Program program = parse_program(tried.program, "case");
  const CaptureVerdict verdict = judge_forward(program, standard_registry(), tried.policy);
  for (const std::string& expected : tried.expected) {
    if (expected.starts_with("backward ")) {
      EXPECT_EQ("backward " + backward_verdict(program), expected) << tried.title << ", line " << tried.line;
      continue;
    }
    if (!expected.starts_with("input ")) {
      EXPECT_EQ(to_text(verdict), expected) << tried.title << ", line " << tried.line;
      continue;
    }
    const bool found = std::ranges::any_of(
        verdict.inputs, [&](const CaptureInput& input) { return shown(input) == expected; });
    std::string all;
    for (const CaptureInput& input : verdict.inputs) all += "\n  " + shown(input);
    EXPECT_TRUE(found) << tried.title << ", line " << tried.line << ": " << expected << "; there are" << all;
  }
}

TEST(Verdicts, TextCases) {
  const std::vector<Case> cases = read_cases("tests/graph/verdicts.case");
  EXPECT_GE(cases.size(), 30u);
  for (const Case& tried : cases) {
    EXPECT_FALSE(tried.expected.empty()) << tried.title;
    check(tried);
  }
}

}  // namespace
}  // namespace metaprof
