// The reports of `metaprof profile` that are files.

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kBase = "tests/data/fixtures/base.pt2";  // Linear(4, 3), relu, cross-entropy

TEST(ReportFiles, AllFormsAtOnce) {
  const std::string base = testing::TempDir() + "metaprof_forms" + std::to_string(getpid());
  const Outcome outcome =
      run_program("profile " + kBase + " --optimizer none --per-node --json " + base + ".json --csv " + base +
                  ".csv --html " + base + ".html --chrome-trace " + base + ".trace.json --snapshot " + base +
                  ".pickle --folded " + base + ".folded --dot " + base + ".dot --timeline " + base + ".svg");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\nnode "), std::string::npos) << "the text is printed beside the files";
  EXPECT_EQ(Json::parse(read_file(base + ".json"))["nodes"]["granularity"], "module");
  EXPECT_TRUE(read_file(base + ".csv").starts_with("node,type,accumulated,"));
  EXPECT_TRUE(read_file(base + ".html").starts_with("<!DOCTYPE html>"));
  EXPECT_GT(Json::parse(read_file(base + ".trace.json"))["traceEvents"].size(), 50u);
  EXPECT_TRUE(read_file(base + ".pickle").starts_with("\x80\x02}"));
  EXPECT_TRUE(read_file(base + ".folded").starts_with("(root);"));
  EXPECT_TRUE(read_file(base + ".dot").starts_with("digraph"));
  const std::string picture = read_file(base + ".svg");
  EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
  for (const char* word : {">forward<", ">backward<", ">peak ", ">FITS h200: needs ", ">parameter<"})
    EXPECT_NE(picture.find(word), std::string::npos) << word;
}

// A PNG says its size in big-endian numbers behind its first chunk's name.
TEST(ReportFiles, PicturesAreWhatTheirNamesEndWith) {
  const std::string base = testing::TempDir() + "metaprof_pictures_" + std::to_string(getpid());
  const Outcome outcome = run_program("profile tests/data/fixtures/base.pt2 --timeline " + base +
                                      "_time.png --svg " + base + "_graph.png");
  if (outcome.err.find("needs the Graphviz library") != std::string::npos) GTEST_SKIP() << outcome.err;
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string time = read_file(base + "_time.png"), graph = read_file(base + "_graph.png");
  for (const std::string& png : {time, graph})
    EXPECT_TRUE(png.starts_with("\x89PNG\r\n")) << png.substr(0, 8);
  const auto number_at = [&](size_t at) {
    int number = 0;
    for (size_t i = 0; i < 4; ++i) number = number * 256 + static_cast<unsigned char>(time.at(at + i));
    return number;
  };
  EXPECT_EQ(number_at(16), 1920) << "960 points, two pixels each";
  EXPECT_EQ(number_at(20), 840);
  run_program("profile tests/data/fixtures/base.pt2 --timeline " + base + ".svg");
  EXPECT_TRUE(read_file(base + ".svg").starts_with("<svg "));
  for (const char* file : {"_time.png", "_graph.png", ".svg"}) std::remove((base + file).c_str());
}

TEST(ReportFiles, OneOfThemCanGoToStdout) {
  const Outcome csv = run_program("profile " + kBase + " --optimizer none --csv - --columns saved");
  EXPECT_TRUE(csv.out.starts_with("module,saved\n(root),")) << csv.out;
  const Outcome markdown = run_program("profile " + kBase + " --optimizer none --markdown");
  EXPECT_TRUE(markdown.out.starts_with("## base on NVIDIA H200\n")) << markdown.out;
  expect_refusal("profile " + kBase + " --json - --html -", "--json and --html cannot both go to stdout");
}

// The page shows the run beside an earlier report.
TEST(ReportFiles, ThePageShowsTwoRuns) {
  const std::string base = testing::TempDir() + "metaprof_compared" + std::to_string(getpid());
  run_program("profile " + kBase + " --optimizer none --json " + base + ".json");
  const Outcome outcome = run_program("profile " + kBase + " --html - --compare " + base + ".json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"options\":[\"optimizer: none → adamw\"]"), std::string::npos);
  expect_refusal("profile " + kBase + " --compare " + base + ".json",
                 "--compare needs the page of --html: give --html FILE, too; metaprof diff compares two "
                 "reports as text");
  expect_refusal_with("profile " + kBase + " --html - --compare no.json", {"no.json"});
}

TEST(ReportFiles, NodesFollowTheSchema) {
  for (const char* granularity : {"module", "function", "operator"}) {
    const std::string file =
        testing::TempDir() + "metaprof_nodes_schema" + std::to_string(getpid()) + ".json";
    const std::string options = fmt::format("--optimizer none --per-node --granularity {}", granularity);
    ASSERT_EQ(run_program(fmt::format("profile {} {} --json {}", kBase, options, file)).exit_code, 0);
    const int status = std::system(
        (METAPROF_PYTHON " tests/validate_json.py reports/schema/profile.schema.json " + file).c_str());
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
    EXPECT_EQ(WEXITSTATUS(status), 0) << granularity;
  }
}

TEST(ReportFiles, WhatCannotBeWrittenIsAnError) {
  expect_refusal("profile " + kBase + " --optimizer none --html /no/such/folder/page.html",
                 "/no/such/folder/page.html: cannot be written (No such file or directory)");
  expect_refusal("profile " + kBase + " --optimizer none --device cpu --snapshot x.pickle",
                 "--snapshot: cpu has no caching allocator whose history could be shown");
}

}  // namespace
}  // namespace metaprof
