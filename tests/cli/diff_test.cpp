#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kBase = "tests/data/fixtures/base.pt2";  // Linear(4, 3), relu, cross-entropy

std::string profile(const std::string& name, const std::string& options) {
  const std::string file = testing::TempDir() + "metaprof_diff_" + std::to_string(getpid()) + name + ".json";
  EXPECT_EQ(run_program("profile " + kBase + " --steps 1 " + options + " --json " + file).exit_code, 0);
  return file;
}

TEST(Diff, EqualReportsDoNotDiffer) {
  const std::string a = profile("a", ""), b = profile("b", "");
  const Outcome outcome = run_program("diff " + a + " " + b);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "no figure differs\n");
}

// The model has 15 parameters in two tensors; AdamW adds two states of 60 bytes and two counters of 4.
TEST(Diff, NamesOptionsAndFigures) {
  const std::string a = profile("sgd", "--optimizer sgd"), b = profile("adamw", "--optimizer adamw");
  const Outcome outcome = run_program("diff " + a + " " + b);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.out.starts_with("optimizer: sgd → adamw\n")) << outcome.out;
  const Json json = Json::parse(run_program("diff " + a + " " + b + " --json -").out);
  EXPECT_EQ(json["schema"], "metaprof.diff");
  EXPECT_EQ(json["options"][0], "optimizer: sgd → adamw");
  bool found = false;
  for (const Json& row : json["rows"]) {
    if (row["figure"] != "phases.optimizer 0.requested_bytes.current") continue;
    found = true;
    EXPECT_EQ(row["after"].get<int64_t>() - row["before"].get<int64_t>(), 2 * 60)
        << "the counters are on the host";
  }
  EXPECT_TRUE(found);
}

TEST(Diff, AllFiguresOrTheMostTelling) {
  const std::string a = profile("one", ""), b = profile("two", "--precision amp-bf16");
  const std::string few = run_program("diff " + a + " " + b + " --top 1").out;
  const std::string all = run_program("diff " + a + " " + b + " --top -1").out;
  EXPECT_NE(few.find(" more (--top -1 shows all)\n"), std::string::npos) << few;
  EXPECT_EQ(all.find(" more (--top -1 shows all)\n"), std::string::npos);
  EXPECT_GT(all.size(), few.size());
}

TEST(Diff, AsMarkdownForAComment) {
  const std::string a = profile("sgd", "--optimizer sgd"), b = profile("adamw", "--optimizer adamw");
  const std::string text = run_program("diff " + a + " " + b + " --markdown").out;
  EXPECT_TRUE(
      text.starts_with("### Memory of a training step\n\n- optimizer: sgd → adamw\n\n"
                       "| at most | before | after | change |\n| :-- | --: | --: | --: |\n| allocated | "))
      << text;
  EXPECT_NE(text.find("| optimizer\\_state | 0 B | 120 B | +120 B |"), std::string::npos) << text;
  EXPECT_EQ(run_program("diff " + a + " " + a + " --markdown").out,
            "### Memory of a training step\n\nNo figure differs.\n");
}

TEST(Diff, FilesThatAreNoReportsSayWhy) {
  const std::string report = profile("report", "");
  const auto file = [](const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "metaprof_diff_" + std::to_string(getpid()) + name;
    std::ofstream(path) << text;
    return path;
  };
  const std::string cut = file("cut.json", read_file(report).substr(0, 100));
  expect_refusal(
      "diff " + cut + " " + report,
      cut +
          ": JSON syntax error at byte 100 of 100: expected a closing quote, got the end of the text; a "
          "report is what `metaprof profile --json` writes");
  const std::string other = file("other.json", R"({"schema": "metaprof.fit"})");
  expect_refusal("diff " + report + " " + other,
                 other + ": 'schema_version' is missing; a report is what `metaprof profile --json` writes");
  const std::string fit = file("fit.json", R"({"schema": "metaprof.fit", "schema_version": 1})");
  expect_refusal("diff " + report + " " + fit,
                 fit + ": schema: expected \"metaprof.profile\", got \"metaprof.fit\"");
  const std::string later = file("later.json", R"({"schema": "metaprof.profile", "schema_version": 9})");
  expect_refusal("diff " + later + " " + report, later + ": schema_version: expected 1, got 9");
  expect_refusal("diff " + report + " no-such.json", "no-such.json: no such file");
}

}  // namespace
}  // namespace metaprof
