#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "meta/allocator/exact_allocator.h"
#include "meta/trace/text.h"
#include "reports/profile/profile_report.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

ProfileReport report_of(const Trace& trace) {
  ProfileReport report;
  report.model = "two_layers";
  report.device = "toy";
  report.device_title = "Toy 4000";
  report.device_memory = {4000};
  report.options = {{"precision", std::string("fp32")},
                    {"optimizer", std::string("sgd")},
                    {"steps", int64_t{2}},
                    {"channels_last", false},
                    {"clip_norm", std::monostate()}};
  report.module_types = {{"", "demo.TwoLayers"}, {"fc1", "torch.nn.modules.linear.Linear"}, {"act", "ReLU"}};
  ExactAllocator allocator;
  report.memory = profile_memory(trace, kFirstGpu, allocator);
  report.counts =
      count(trace, {.bytes_per_second = 1e6, .flops_f64 = 1e6, .flops_f32 = 1e6, .flops_f16 = 1e6});
  report.workspaces.rule = 1;
  return report;
}

ProfileReport two_layers() { return report_of(parse_trace(read_file("tests/data/traces/two_layers.trace"))); }

// The report that people see. After a change that is meant: METAPROF_WRITE_GOLDEN=1 ./test reports, and look
// at the difference that git shows.
TEST(ProfileText, IsTheReportOnFile) {
  const char* file = "tests/data/reports/two_layers.txt";
  const std::string text = profile_text(two_layers(), {});
  if (std::getenv("METAPROF_WRITE_GOLDEN")) std::ofstream(file) << text;
  EXPECT_EQ(text, read_file(file));
}

TEST(ProfileText, SaysHowManyLifetimesAreGuessed) {
  ProfileReport report = two_layers();
  report.guessed = {{"an element was assigned", 2, {2048}}, {"a list may have let it go", 1, {1024}}};
  const std::string text = profile_text(report, {});
  EXPECT_NE(
      text.find("\nNote: when tensors of the forward go is guessed where the export does not tell it: 3 of "
                "them, 3.0 KiB together: an element was assigned (2, 2.0 KiB), a list may have let it go (1, "
                "1.0 KiB); metaprof run takes it from a run (docs/explanation/lifetimes.md)\n"),
      std::string::npos)
      << text;
  const Json rows = Json::parse(profile_json(report))["guessed_lifetimes"];
  EXPECT_EQ(rows[0], Json({{"why", "an element was assigned"}, {"tensors", 2}, {"bytes", 2048}}));
}

TEST(ProfileText, SiblingsAreSortedByAColumn) {
  const std::string text =
      profile_text(two_layers(), {.depth = 3, .sort = "parameters", .columns = {"parameters"}});
  EXPECT_NE(text.find("module  parameters\n"
                      "------------------\n"
                      "(root)          98\n"
                      "  fc1           64\n"
                      "  fc2           34\n"
                      "  head          32\n"
                      "  act            0\n"),
            std::string::npos)
      << text;
}

TEST(ProfileText, DepthCutsTheTreeAndSaysSo) {
  const std::string text = profile_text(two_layers(), {.depth = 0, .sort = "", .columns = {"type"}});
  EXPECT_NE(text.find("module  type\n-----------------\n(root)  TwoLayers\n4 modules deeper than 0 are not "
                      "shown (--depth)\n"),
            std::string::npos)
      << text;
}

TEST(ProfileText, AnUnknownColumnIsAnError) {
  try {
    profile_text(two_layers(), {.depth = 3, .sort = "size", .columns = {}});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "there is no column 'size'; there are type, parameters, saved, forward_tmp, forward_out, "
                 "backward_tmp, backward_out, flops_forward, flops_backward");
  }
}

TEST(ProfileText, SaysWhatIsMissingOnASmallDevice) {
  ProfileReport report = two_layers();
  report.device_memory = {3000};
  EXPECT_TRUE(profile_text(report, {})
                  .starts_with("DOES NOT FIT toy: needs 3.2 KiB of 2.9 KiB, margin 0 %; 228 B are missing\n"))
      << profile_text(report, {});
  EXPECT_EQ(Json::parse(profile_json(report))["fits"], false);
}

TEST(ProfileText, SaysWhereMemoryRanOut) {
  ProfileReport report = two_layers();
  report.memory.phases.out_of_memory = OutOfMemory{.event = 9,
                                                   .part = {.phase = Phase::forward, .step = 1},
                                                   .op = "aten::mm",
                                                   .module = "fc1",
                                                   .requested = {2048},
                                                   .allocated = {3072},
                                                   .reserved = {3584}};
  const std::string text = profile_text(report, {});
  EXPECT_TRUE(text.starts_with("DOES NOT FIT toy: needs more than 3.9 KiB of 3.9 KiB, margin 0 %\n")) << text;
  // 3584 - 3072 = 512. People count steps from 1.
  EXPECT_NE(
      text.find(
          "\nOut of memory in forward, step 2, in aten::mm of fc1: it asks for 2.0 KiB while 3.0 KiB are "
          "allocated and 512 B lie in the allocator's cache in pieces that are too small\n"),
      std::string::npos)
      << text;
  report.needed_memory = Bytes{5024};
  EXPECT_TRUE(
      profile_text(report, {})
          .starts_with("DOES NOT FIT toy: needs 4.9 KiB of 3.9 KiB, margin 0 %; 1.0 KiB are missing\n"))
      << profile_text(report, {});
  report.outside = {1024};
  report.margin = 0.25;
  EXPECT_TRUE(profile_text(report, {})
                  .starts_with("DOES NOT FIT toy: needs 4.9 KiB + 1.0 KiB outside the allocator of 3.9 KiB, "
                               "margin 25 % (1000 B); 3.0 KiB "
                               "are missing\n"))
      << profile_text(report, {});
}

TEST(ProfileText, ColourIsForTerminalsOnly) {
  EXPECT_EQ(profile_text(two_layers(), {}).find('\x1b'), std::string::npos);
  EXPECT_NE(profile_text(two_layers(), {.depth = 3, .sort = "", .columns = {}, .colour = true})
                .find("\x1b[1mPeak\x1b[0m"),
            std::string::npos);
}

TEST(ProfileText, NamesOfTheModelCannotHarmTheTerminal) {
  Trace trace = parse_trace(
      "# phase forward step 0\n# enter \"a\\x1b[2Jb\"\n> \"x::\\n\" unmodelled\n+ 1 8 activation\n< "
      "f32[2]@1\n");
  ProfileReport report = report_of(trace);
  report.model = "evil\r\x1b]0;title\x07";
  report.module_types = {{"a\x1b[2Jb", "T\x1b"}};
  const std::string text = profile_text(report, {});
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << text;
  EXPECT_TRUE(Json::accept(profile_json(report)));
}

TEST(ProfileText, ARunWithoutMemoryHasAReport) {
  const std::string text = profile_text(report_of(parse_trace("")), {});
  EXPECT_TRUE(text.starts_with("FITS toy: needs 0 B of 3.9 KiB, margin 0 %; 3.9 KiB stay free\n")) << text;
}

TEST(ProfileJson, HasTheFiguresUnderTheirNames) {
  const Json json = Json::parse(profile_json(two_layers()));
  EXPECT_EQ(json["schema"], "metaprof.profile");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["options"], (Json{{"precision", "fp32"},
                                   {"optimizer", "sgd"},
                                   {"steps", 2},
                                   {"channels_last", false},
                                   {"clip_norm", nullptr}}));
  EXPECT_EQ(json["parameters"]["by_module"]["fc2"], 34);
  EXPECT_EQ(json["flops"]["forward"], 1536);
  EXPECT_EQ(json["flops"]["by_op"], (Json{{"aten.addmm", {{"forward", 512}, {"backward", 0}}},
                                          {"aten.mm", {{"forward", 1024}, {"backward", 2048}}}}));
  EXPECT_EQ(json["flops_all"]["by_op"]["aten.add_"]["optimizer"], 128);
  EXPECT_EQ(json["saved"]["by_node"][0], (Json{{"node", "AddmmBackward0"}, {"count", 1}, {"bytes", 512}}));
  EXPECT_EQ(json["phases"][0]["phase"], "setup");
  EXPECT_FALSE(json["phases"][0].contains("step"));
  EXPECT_EQ(json["phases"][2]["requested_bytes"], (Json{{"current", 1948}, {"peak", 3228}}));
  EXPECT_EQ(json["phases"][5]["step"], 1);
  EXPECT_EQ(json["peak"]["op"], "aten::threshold_backward");
  EXPECT_EQ(json["peak"]["by_category"]["workspace"], 1024);
  EXPECT_EQ(json["peak"]["largest"][1]["shape"], Json::array({8, 16}));
  EXPECT_EQ(json["peak"]["largest"][1]["dtype"], "float32");
  EXPECT_EQ(json["peak"]["largest"][0]["shape"], nullptr);
  EXPECT_EQ(json["modules"][1]["type"], "torch.nn.modules.linear.Linear");
  EXPECT_EQ(json["modules"][1]["flops_backward"], 1024);
  EXPECT_EQ(json["unmodelled"][0]["op"], "mylib::mean");
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["out_of_memory"], nullptr);
}

TEST(ProfileJson, NamesThatAreNotUtf8DoNotBreakIt) {
  ProfileReport report = two_layers();
  report.model = "\xff\xfe";
  EXPECT_TRUE(Json::accept(profile_json(report)));
}

// Every report validates against the schema that other tools are given.
TEST(ProfileJson, FollowsItsSchema) {
  ProfileReport full = two_layers();
  ProfileReport failed = two_layers();
  failed.memory.phases.out_of_memory = OutOfMemory{.event = 9,
                                                   .part = {.phase = Phase::forward, .step = 1, .micro = 0},
                                                   .op = "aten::mm",
                                                   .module = "fc1",
                                                   .requested = {2048}};
  failed.needed_memory = Bytes{5024};
  const std::string folder = testing::TempDir();
  std::string files;
  int number = 0;
  for (const ProfileReport& report : {full, failed, report_of(parse_trace(""))}) {
    const std::string file =
        folder + "metaprof_profile_" + std::to_string(getpid()) + "_" + std::to_string(number++) + ".json";
    std::ofstream(file) << profile_json(report);
    files += " '" + file + "'";
  }
  const int status = std::system(
      (METAPROF_PYTHON " tests/validate_json.py reports/schema/profile.schema.json" + files).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace metaprof
