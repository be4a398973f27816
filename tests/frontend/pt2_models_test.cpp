// Exported models against the facts that were measured on the module itself.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "program/pt2/pt2.h"
#include "tests/evidence_folder.h"
#include "tests/frontend/archives.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

struct Totals {
  int64_t tensors = 0, count = 0, bytes = 0;
  void add(const TensorFacts& tensor) {
    ++tensors;
    count += numel(tensor.sizes);
    bytes += numel(tensor.sizes) * element_size(tensor.dtype);
  }
};

void expect_totals(const Totals& totals, const nlohmann::json& facts, const std::string& prefix = "") {
  EXPECT_EQ(totals.tensors, facts.at(prefix + "tensors"));
  EXPECT_EQ(totals.count, facts.at(prefix + "count"));
  EXPECT_EQ(totals.bytes, facts.at(prefix + "bytes"));
}

const TensorFacts& tensor_of(const Program& program, const ProgramInput& input) {
  return *program.graph.values.at(static_cast<size_t>(input.value)).tensor;
}

// `has_default_sizes`: the facts are of these inputs' sizes.
void expect_facts(const Program& program, const nlohmann::json& facts, bool has_default_sizes) {
  Totals parameters, trainable, buffers;
  size_t inputs = 0;
  for (const ProgramInput& input : program.inputs) {
    using Kind = ProgramInput::Kind;
    if (input.kind == Kind::parameter && input.tied_to < 0) {
      parameters.add(tensor_of(program, input));
      if (tensor_of(program, input).requires_grad) trainable.add(tensor_of(program, input));
    }
    if (input.kind == Kind::buffer) buffers.add(tensor_of(program, input));
    if (input.kind != Kind::user) continue;
    const auto& expected = facts.at("inputs").at(inputs++);
    EXPECT_EQ(input.name, expected.at("name"));
    EXPECT_EQ(long_name(tensor_of(program, input).dtype), expected.at("dtype").get<std::string>());
    const Sizes& sizes = tensor_of(program, input).sizes;
    if (has_default_sizes) {
      EXPECT_EQ(std::vector<int64_t>(sizes.begin(), sizes.end()),
                expected.at("shape").get<std::vector<int64_t>>());
    }
  }
  EXPECT_EQ(inputs, facts.at("inputs").size());
  expect_totals(parameters, facts.at("parameters"));
  expect_totals(trainable, facts.at("parameters"), "trainable_");
  expect_totals(buffers, facts.at("buffers"));
  EXPECT_EQ(program.tied_names(),
            facts.at("parameters").at("tied").get<std::vector<std::vector<std::string>>>());
  EXPECT_NE(program.loss(), kNoValue);
  EXPECT_TRUE(program.warnings.empty()) << program.warnings.front();
}

TEST(Pt2Models, Resnet18AndGpt2HaveTheFactsOfTheirModules) {
  for (const std::string name : {"resnet18", "gpt2"}) {
    SCOPED_TRACE(name);
    const std::string path = "tests/data/models/" + name;
    expect_facts(read_pt2(path + ".pt2"), nlohmann::json::parse(read_file(path + ".json")), true);
  }
}

TEST(Pt2Models, TextsThatRepeatAreKeptOnce) {
  // 461 calls in twelve layers of the same code, and in each a `contiguous` that the export lacks.
  const Program program = read_pt2("tests/data/models/gpt2.pt2");
  EXPECT_EQ(program.graph.nodes.size(), 473u);
  EXPECT_EQ(program.source_stacks.size(), 33u);
  EXPECT_EQ(program.module_stacks.size(), 140u);
}

TEST(Pt2Models, TiesAreFoundWithoutTheExportersNote) {
  const std::string path = "tests/data/models/gpt2.pt2";
  const Archive archive(path);
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Archive::Entry& entry : archive.entries())
    if (!entry.name.ends_with("extra/training.json"))
      entries.emplace_back(entry.name, archive.read(entry).view());
  ASSERT_EQ(entries.size() + 1, archive.entries().size());
  const TemporaryFile file("without_note.pt2");
  file.write_archive(entries);
  const Program program = read_pt2(file.path());
  EXPECT_EQ(program.tied_names(), read_pt2(path).tied_names());
  EXPECT_EQ(program.warnings.size(), 1u);
}

TEST(Pt2Models, AllExportedModelsHaveTheFactsOfTheirModules) {
  const EvidenceFolder evidence = evidence_folder();
  const auto& folder = evidence.models;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path().filename());
    // gpt2.b1.s64.pt2 is gpt2 with other sizes.
    const std::string stem = entry.path().stem().string();
    const std::string name = stem.substr(0, stem.find('.'));
    const std::string file = (folder / (name + ".json")).string();
    if (!evidence.whole && !std::filesystem::exists(file)) continue;
    const auto facts = nlohmann::json::parse(read_file(file));
    expect_facts(read_pt2(entry.path().string()), facts, stem == name);
    ++count;
  }
  EXPECT_GT(count, 45);
}

TEST(Pt2Models, AllExportedProgramsAreRead) {
  const auto folder = evidence_folder().programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path().filename());
    Pt2Options options;
    if (entry.path().stem() == "several_programs") options.program = "train";
    const Program program = read_pt2(entry.path().string(), options);
    EXPECT_NE(program.loss(), kNoValue);
    EXPECT_FALSE(program.graph.nodes.empty());
    for (const GraphNode& node : program.graph.nodes)
      EXPECT_NE(node.op.find("::"), std::string::npos) << node.op;
  }
}

}  // namespace
}  // namespace metaprof
