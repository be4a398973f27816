// Models that are built from their configuration, against what the framework itself counted: parameters in all
// and in each module at the top, FLOPs forward and backward at each size (tests/data/configs/facts.json).

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "estimate/estimate.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

const std::string kFolder = "tests/data/configs/";

// Configurations with the keys of transformers 5 lie with the tests, the others are those of the built-in models.
std::string config_of(const std::string& name) {
  return (name.ends_with("-v5keys") ? kFolder + "families/" : "program/builtin/configs/") + name + ".json";
}

const nlohmann::json& facts() {
  static const auto facts = nlohmann::json::parse(read_file(kFolder + "facts.json"));
  return facts;
}

ProfileReport report_of(const std::string& name, const nlohmann::json& sizes) {
  RunOptions options;
  options.framework = "2.11";  // with which the facts were counted
  // The counter ran with tensors of 16 bits, for which attention is one fused operator.
  options.step.precision = Precision::bf16;
  options.step.optimizer = "none";
  options.step.steps = 1;
  options.workspaces = "none";
  options.memory = "100TB";
  options.batch = sizes.at("batch").get<int>();
  for (const char* key : {"seq", "encoder_seq"})
    if (sizes.contains(key)) options.sequence = sizes.at(key).get<int>();
  if (sizes.contains("encoder_seq"))
    options.settings = {
        fmt::format("decoder_input_ids={}x{}", *options.batch, sizes.at("decoder_seq").get<int>())};
  else if (sizes.contains("decoder_seq"))
    options.sequence = sizes.at("decoder_seq").get<int>();
  if (sizes.contains("image")) {
    const auto image = sizes.at("image").get<std::vector<int64_t>>();
    options.settings = {fmt::format("pixel_values={}x{}", *options.batch, fmt::join(image, "x"))};
  }
  return estimate(read_model(config_of(name)), options).report;
}

// Elements by the paths that the facts list, each parameter under the longest of them. A parameter of several names
// counts under one of them.
struct ByPath {
  int64_t own = 0;
  std::vector<int64_t> shared;

  bool can_be(int64_t elements) const { return can_be(elements - own, 0); }

 private:
  bool can_be(int64_t rest, size_t next) const {
    return rest == 0 ||
           (next < shared.size() && (can_be(rest - shared[next], next + 1) || can_be(rest, next + 1)));
  }
};

std::map<std::string, ByPath> elements_by_path(const Program& program, const nlohmann::json& paths) {
  std::set<std::string> shared;
  for (const auto& names : program.tied_names()) shared.insert(names.begin(), names.end());
  std::map<std::string, ByPath> by_path;
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::parameter) continue;
    std::string longest;
    for (const auto& [path, count] : paths.items())
      if ((input.name == path || input.name.starts_with(path + ".")) && path.size() > longest.size())
        longest = path;
    const int64_t elements = numel(program.graph.values[static_cast<size_t>(input.value)].tensor->sizes);
    if (shared.contains(input.name))
      by_path[longest].shared.push_back(elements);
    else
      by_path[longest].own += elements;
  }
  return by_path;
}

class ConfigFacts : public testing::TestWithParam<std::string> {};

TEST_P(ConfigFacts, ParametersAreTheFrameworks) {
  const nlohmann::json& expected = facts().at(GetParam());
  const Program program = read_model(config_of(GetParam())).program;
  auto found = elements_by_path(program, expected.at("by_top_module"));
  for (const auto& [path, count] : expected.at("by_top_module").items())
    EXPECT_TRUE(found[path].can_be(count.get<int64_t>()))
        << path << ": " << found[path].own << ", expected " << count.get<int64_t>();
}

// The facts count every attention as a fused operator, whose backward multiplies 2.5 times as much as forward. A
// bias that trains takes the path of single products, whose backward multiplies twice as much: 0.5 · 4 · batch ·
// heads · length² · width less in each self-attention (t5).
int64_t less_in_backward(const nlohmann::json& model, const nlohmann::json& sizes) {
  if (!model.contains("biased_attention")) return 0;
  const nlohmann::json& attention = model.at("biased_attention");
  const auto square = [&](const char* key) {
    return sizes.at(key).get<int64_t>() * sizes.at(key).get<int64_t>();
  };
  const int64_t pairs = attention.at("encoder_layers").get<int64_t>() * square("encoder_seq") +
                        attention.at("decoder_layers").get<int64_t>() * square("decoder_seq");
  return 2 * sizes.at("batch").get<int64_t>() * attention.at("heads").get<int64_t>() *
         attention.at("width").get<int64_t>() * pairs;
}

TEST_P(ConfigFacts, FlopsAreTheFrameworks) {
  const nlohmann::json& expected = facts().at(GetParam());
  for (const nlohmann::json& point : expected.at("flops")) {
    const ProfileReport report = report_of(GetParam(), point);
    EXPECT_TRUE(report.memory.unmodelled.empty());
    EXPECT_EQ(report.memory.parameters.all.count, expected.at("parameters").get<int64_t>());
    EXPECT_EQ(report.counts.total.counted.forward.count, point.at("forward").get<int64_t>()) << point;
    EXPECT_EQ(report.counts.total.counted.backward.count,
              point.at("backward").get<int64_t>() - less_in_backward(expected, point))
        << point;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, row] : facts().items()) names.push_back(name);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ConfigFacts, testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace metaprof
