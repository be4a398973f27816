// Malformed and hostile archives, as tests/data/fixtures/expected.json says: what must be refused is refused
// by a message with the given words and the file's name.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "program/pt2/pt2.h"
#include "tests/frontend/archives.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

constexpr const char* kFolder = "tests/data/fixtures/";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

struct Outcome {
  std::string kind, text;  // "reject" with its message, "warn" with all warnings, "accept"
};

Outcome outcome_of(const std::string& path) {
  try {
    const Program program = read_pt2(path);
    std::string text;
    for (const std::string& warning : program.warnings) text += warning + "\n";
    return {text.empty() ? "accept" : "warn", text};
  } catch (const Error& error) {
    return {"reject", error.what()};
  }
}

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, HasTheOutcomeOfTheTable) {
  static const auto table = nlohmann::json::parse(read_file(std::string(kFolder) + "expected.json"));
  const auto& expected = table.at(GetParam());
  const Outcome outcome = outcome_of(kFolder + GetParam());
  EXPECT_EQ(outcome.text.find_first_of("\x1b\x07"), std::string::npos) << "control characters are escaped";
  if (expected.at("outcome") == "any") return;
  EXPECT_EQ(outcome.kind, expected.at("outcome")) << outcome.text;
  if (outcome.kind != "accept") expect_words(outcome.text, GetParam());
  if (outcome.kind == "reject") {
    EXPECT_EQ(outcome.text.find('\n'), std::string::npos) << "one line";
  }
  for (const std::string word : expected.at("contains")) expect_words(lower(outcome.text), lower(word));
}

// All that the table names and that is stored, but for those of other readers and those whose outcome is the
// interpreter's: see the tests below.
std::vector<std::string> fixtures() {
  const std::set<std::string> others = {"unknown_op.pt2", "int_output.pt2"};
  std::vector<std::string> names;
  const auto table = nlohmann::json::parse(read_file(std::string(kFolder) + "expected.json"));
  for (const auto& [name, entry] : table.items())
    if (name.ends_with(".pt2") && !entry.at("generated") && !others.count(name)) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pt2, Fixture, testing::ValuesIn(fixtures()),
                         [](const auto& info) { return info.param.substr(0, info.param.size() - 4); });

TEST(Fixtures, AnUnknownOperatorIsKeptForTheInterpreterToReport) {
  const Program program = read_pt2(std::string(kFolder) + "unknown_op.pt2");
  EXPECT_EQ(program.graph.nodes.at(1).op, "nonexistent::magic");
  EXPECT_EQ(program.graph.nodes.at(1).targets.size(), 1u);
}

TEST(Fixtures, AnArgumentOfAnUnknownKindIsKept) {
  const Program program = read_pt2(std::string(kFolder) + "unknown_argument_kind.pt2");
  const Operand& operand = program.graph.nodes.at(1).operands.back();
  EXPECT_EQ(operand.kind, Operand::Kind::unknown);
  EXPECT_EQ(operand.name, "q");
  EXPECT_EQ(operand.text, "as_quaternion");
}

TEST(Fixtures, AnIntegerOutputIsNoLoss) {
  // Fine for inference; a training step refuses it.
  EXPECT_EQ(read_pt2(std::string(kFolder) + "int_output.pt2").loss(), kNoValue);
}

TEST(Fixtures, SizesUpToTheLastBitAreExact) {
  const Program program = read_pt2(std::string(kFolder) + "size_1EiB.pt2");
  const Sizes& sizes = program.graph.values.at(2).tensor->sizes;
  EXPECT_EQ(sizes, (Sizes{int64_t{1} << 56, 4}));
  EXPECT_EQ(numel(sizes) * element_size(DType::f32), int64_t{1} << 60);
}

TEST(Fixtures, NamesAreReadAsTheyAre) {
  const Program control = read_pt2(std::string(kFolder) + "control_characters.pt2");
  const auto& frame = control.module_stacks.at(static_cast<size_t>(control.graph.nodes.at(1).modules)).back();
  EXPECT_EQ(frame.path, std::string("fc\n\x1b]0;owned\x07\0", 14)) << "the stack has a ';' in this path";
}

TEST(Fixtures, SubGraphsNestTwentyDeep) {
  const Program program = read_pt2(std::string(kFolder) + "graphs_nested_20.pt2");
  int depth = 0;
  for (const Graph* graph = &program.graph; !graph->nodes.empty() && graph->nodes[0].operands.size() == 2;
       ++depth)
    graph = graph->nodes[0].operands[1].graph.get();
  EXPECT_EQ(depth, 21) << "the outer call and twenty within";
}

}  // namespace
}  // namespace metaprof
