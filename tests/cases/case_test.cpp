// Runs the text cases of this folder (*.case).

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "tests/cases/case_file.h"
#include "tests/cases/identities.h"

namespace metaprof {
namespace {

std::vector<TextCase> all_cases() {
  std::vector<TextCase> all;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/cases"))
    if (entry.path().extension() == ".case") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files)
    for (TextCase& one : read_cases(file)) all.push_back(std::move(one));
  return all;
}

int64_t sum(const std::vector<NodeTensor>& tensors, bool aliases) {
  int64_t bytes = 0;
  for (const NodeTensor& tensor : tensors)
    if (tensor.alias == aliases) bytes += tensor.bytes.count;
  return bytes;
}

std::map<std::string, int64_t> figures_of(const NodeRow& row) {
  return {{"in", sum(row.fwd_in, false)},       {"tmp", row.fwd_mem_tmp.count},
          {"out", row.fwd_mem_out.count},       {"all_out", sum(row.fwd_out, false)},
          {"alias", sum(row.fwd_out, true)},    {"other", row.fwd_mem_other.count},
          {"peak", row.fwd_mem_peak.count},     {"parameters", row.parameters.count},
          {"bwd_tmp", row.bwd_mem_tmp.count},   {"bwd_out", row.bwd_mem_out.count},
          {"bwd_grad", row.bwd_mem_grad.count}, {"bwd_freed", row.bwd_mem_freed.count},
          {"recomputed", row.recomputed.count}, {"fwd_flop", row.fwd_flop.count},
          {"bwd_flop", row.bwd_flop.count},     {"recompute_flop", row.recompute_flop.count}};
}

std::string shown(const NodeProfile& nodes) {
  std::string text;
  for (const NodeRow& row : nodes.rows) {
    text += "  expect " + row.name;
    for (const auto& [figure, value] : figures_of(row))
      if (value != 0) text += " " + figure + "=" + std::to_string(value);
    text += "\n";
  }
  return text + "  expect total saved=" + std::to_string(nodes.saved.count) +
         " held=" + std::to_string(nodes.held.count) + "\n";
}

class TextCases : public testing::TestWithParam<TextCase> {};

TEST_P(TextCases, HaveTheirFigures) {
  const TextCase& one = GetParam();
  const Platform device = platform_named(one.device);
  const Trace trace = run_steps(one.program, device, one.options);
  const Rates rates{.bytes_per_second = 1e12, .flops_f64 = 1e12, .flops_f32 = 1e12, .flops_f16 = 1e12};
  const NodeProfile nodes = profile_nodes(trace, device.device(), *granularity_named(one.granularity), rates);
  const std::map<std::string, int64_t> totals{
      {"saved", nodes.saved.count},
      {"held", nodes.held.count},
      {"grown", (nodes.live_after_forward - nodes.live_before_forward).count}};
  for (const Expectation& expectation : one.expectations) {
    std::map<std::string, int64_t> figures;
    if (expectation.node == "total") figures = totals;
    for (const NodeRow& row : nodes.rows)
      if (row.name == expectation.node) figures = figures_of(row);
    for (const auto& [figure, value] : expectation.figures) {
      ASSERT_TRUE(figures.contains(figure))
          << one.file << ":" << expectation.line << ": no " << expectation.node << " " << figure << "\n"
          << shown(nodes);
      EXPECT_EQ(figures[figure], value)
          << one.file << ":" << expectation.line << ": " << expectation.node << " " << figure << "\n"
          << shown(nodes);
    }
  }
  expect_identities(trace, device.device());
}

INSTANTIATE_TEST_SUITE_P(, TextCases, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

// A case that is wrong must not be passed over.
TEST(CaseFile, WhatIsNoCaseIsAnError) {
  const std::string file = testing::TempDir() + "metaprof_wrong" + std::to_string(getpid()) + ".case";
  const auto refuses = [&](const std::string& text, const std::string& message) {
    std::ofstream(file) << text;
    try {
      read_cases(file);
      ADD_FAILURE() << "no error for " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), file + message);
    }
  };
  refuses("y = relu(x)\n", ":1: expected '= NAME' first");
  refuses("= a\ninput x f99[2]\n", ":2: no such dtype in f99[2]");
  refuses("= a\ny = relu(x)\n", ":2: there is no value 'x'");
  refuses("= a\n= b\n", ":2: the case before expects nothing");
}

}  // namespace
}  // namespace metaprof
