// Files at every door: what is read, and what is written.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

const std::string kModel = "tests/data/fixtures/base.pt2";

class DoorsTest : public testing::Test {
 protected:
  DoorsTest() {
    fs::create_directories(folder_ / "folder");
    fs::create_symlink("loop", folder_ / "loop");
    mkfifo(path("fifo").c_str(), 0600);
  }
  ~DoorsTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // A link to what is no file, with the end that a door asks for.
  std::string named(const std::string& name, const std::string& end) const {
    fs::remove(path(name + end));
    fs::create_symlink(name, path(name + end));
    return path(name + end);
  }
  const fs::path folder_ = fs::path(testing::TempDir()) / ("metaprof_doors_" + std::to_string(getpid()));
};

struct InputDoor {
  const char *before, *end, *behind = "";
};
constexpr InputDoor kInputs[] = {
    {"profile ", ".pt2"},
    {"profile ", ".mp"},
    {"profile ", ".trace"},
    {"profile ", ".json"},
    {"profile ", ".config"},
    {"inspect ", ".safetensors"},
    {"inspect ", ".safetensors.index.json"},
    {"ops --replay ", ".log.gz"},
    {"allocator --replay ", ".log.gz"},
    {"profile tests/data/fixtures/base.pt2 --device ", ".json"},
    {"profile tests/data/fixtures/base.pt2 --workspaces ", ".json"},
    {"profile tests/data/fixtures/base.pt2 --html - --compare ", ".json"},
    {"plan tests/data/fixtures/base.pt2 --budget 1GiB --plan ", ".json"},
    {"check tests/data/fixtures/base.pt2 --against ", ".json"},
    {"check tests/data/fixtures/base.pt2 --against ", ".pickle"},
    {"check tests/data/fixtures/base.pt2 --baseline ", ".json"},
    {"diff tests/data/reports/none.json ", ".json"},
};

TEST_F(DoorsTest, WhatIsNoFileIsRefusedWithoutWaiting) {
  for (const InputDoor& door : kInputs) {
    const std::string fifo = named("fifo", door.end), loop = named("loop", door.end);
    if (std::string(door.before).starts_with("diff")) {
      expect_refusal("diff " + fifo + " " + fifo, fifo + ": not a regular file, expected a report of a step");
      continue;
    }
    expect_refusal_with(door.before + fifo + door.behind, {fifo + ": not a regular file, expected "});
    expect_refusal_with(door.before + loop + door.behind,
                        {loop + ": cannot be read (Too many levels of symbolic links)"});
  }
}

TEST_F(DoorsTest, TheFileOfDefaultsIsAFile) {
  const auto refusal = [&](const std::string& name) {
    const Outcome outcome = run_program("devices", "METAPROF_CONFIG=" + name + " ");
    EXPECT_EQ(outcome.exit_code, 2) << name;
    return outcome.err;
  };
  EXPECT_EQ(refusal(path("fifo")),
            "metaprof: " + path("fifo") + ": not a regular file, expected a file of defaults\n");
  EXPECT_EQ(refusal("/dev/zero"), "metaprof: /dev/zero: not a regular file, expected a file of defaults\n");
  EXPECT_EQ(refusal(path("folder")),
            "metaprof: " + path("folder") + ": is a folder, expected a file of defaults\n");
  EXPECT_EQ(run_program("devices", "METAPROF_CONFIG=/dev/null ").exit_code, 0) << "asks for none";
}

// Each option that names a file to write.
constexpr const char* kOutputs[] = {
    "profile MODEL --json ",
    "profile MODEL --csv ",
    "profile MODEL --html ",
    "profile MODEL --chrome-trace ",
    "profile MODEL --snapshot ",
    "profile MODEL --folded ",
    "profile MODEL --dot ",
    "profile MODEL --timeline ",
    "profile MODEL --metrics ",
    "profile MODEL --svg ",
    "profile MODEL --write-trace ",
    "profile MODEL --write-program ",
    "sweep MODEL --batch 2,4 --json ",
    "sweep MODEL --batch 2,4 --csv ",
    "fit MODEL --json ",
    "graph MODEL --json ",
    "graph MODEL --dot ",
    "cudagraphs MODEL --json ",
    "cudagraphs MODEL --dot ",
    "advise MODEL --json ",
    "plan MODEL --budget 1GiB --json ",
    "plan MODEL --budget 1GiB --python ",
    "plan MODEL --budget 1GiB --costs ",
    "plan MODEL --pareto --svg ",
    "plan MODEL --pareto --html ",
    "plan-input MODEL --format rotor --output ",
    "check MODEL --baseline BASELINE --json ",
    "check MODEL --baseline BASELINE --junit ",
    "check MODEL --baseline BASELINE --sarif ",
    "diff BASELINE BASELINE --json ",
    "devices --json ",
    "frameworks --json ",
    "inspect tests/data/weights/mixed.safetensors --json ",
    "ops softmax --json ",
    "allocator --replay tests/data/recordings/gpt2.log.gz --json ",
};

class OutputsTest : public DoorsTest {
 protected:
  OutputsTest() { run_program("profile " + kModel + " --json " + path("baseline.json")); }
  std::string with_files(std::string words) const {
    for (const auto& [word, file] :
         {std::pair("MODEL", kModel), std::pair("BASELINE", path("baseline.json"))})
      for (size_t at = 0; (at = words.find(word)) != words.npos;)
        words.replace(at, std::string_view(word).size(), file);
    return words;
  }
};

// No file may have a byte, which stands for a disk that is full: a pipe may.
TEST_F(OutputsTest, AReportThatCannotBeWrittenLeavesTheEarlier) {
  const std::string file = path("report"), said = path("said");
  for (const char* words : kOutputs) {
    std::ofstream(file) << "the earlier report\n";
    const std::string command = with_files(words) + file + " 2>&1 >/dev/null </dev/null";
    const std::string limited = "(ulimit -f 0; exec " METAPROF_BINARY " " + command + ") | cat >" + said;
    ASSERT_EQ(std::system(limited.c_str()), 0) << words;
    EXPECT_EQ(read_file(file), "the earlier report\n") << words;
    EXPECT_EQ(read_file(said), "metaprof: " + file + ": cannot be written (File too large)\n") << words;
  }
}

TEST_F(OutputsTest, WhatIsNoFileIsNotWrittenTo) {
  for (const char* words : kOutputs) {
    for (const auto& [name, why] :
         {std::pair("fifo", " (a FIFO that nobody reads)"), std::pair("folder", ", it is a folder"),
          std::pair("loop", " (Too many levels of symbolic links)")}) {
      const Outcome outcome = run_program(with_files(words) + path(name));
      EXPECT_EQ(outcome.exit_code, 2) << words;
      EXPECT_NE(outcome.err.find("metaprof: " + path(name) + ": cannot be written" + why + "\n"),
                std::string::npos)
          << words << outcome.err;
    }
  }
}

TEST_F(DoorsTest, StandardOutputAndDescriptorsAreWrittenTo) {
  const std::string words = "sweep " + kModel + " --batch 2,4 --csv ", csv = run_program(words + "-").out;
  EXPECT_NE(csv, "");
  EXPECT_TRUE(run_program(words + "/dev/stdout").out.starts_with(csv));
  EXPECT_TRUE(run_program(words + "/dev/fd/1").out.starts_with(csv));
  EXPECT_EQ(run_program(words + "/dev/null").exit_code, 0);
  run_program(words + "/dev/fd/3 3>" + path("through"));
  EXPECT_EQ(read_file(path("through")), csv);
  EXPECT_NE(run_program(words + "/dev/fd/9").err.find("/dev/fd/9: cannot be written (Bad file descriptor)"),
            std::string::npos);
}

}  // namespace
}  // namespace metaprof
