#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/autograd/case_language.h"

namespace metaprof {
namespace {

std::vector<std::string> case_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/autograd"))
    if (entry.path().extension() == ".case") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

class TextCases : public ::testing::TestWithParam<std::string> {};

TEST_P(TextCases, Hold) { run_case_file(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Files, TextCases, ::testing::ValuesIn(case_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace metaprof
