// Text from a model's file in whatever leaves the program.

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

// What a terminal would obey, what turns the direction of writing, and what is no UTF-8. A program's text may have them
// as characters, or as \x where they are ASCII.
constexpr const char* kWritten = "=cmd()\\x1b[31m\\x07\u009b2J\u0085\u202e\u2066<b>\\x7f";
constexpr const char* kForbidden[] = {"\x1b",   "\x07", "\u009b", "\u0085", "\u202e",
                                      "\u2066", "\x7f", "\xff",   "\t",     "\r"};

std::string hostile_program() {
  const std::string n = kWritten;
  return "metaprof program 1\nname \"" + n + "\"\nwarning \"" + n + "\"\nmodule \"" + n + "\" \"" + n +
         "\"\nparameter \"" + n + ".w\" = %w: f32[4,3] grad\ninput \"" + n + "\" = %x: f32[2,3]\n" +
         "scope m1 = \"\"\nscope m2 = \"" + n + "\" in m1\nfile f1 = \"" + n +
         ".py\"\nline l1 = f1 12 forward \"" + n +
         "\"\nstack s1 = l1\n%y: f32[2,4] = aten::linear(%x, %w) in m2 at s1\n"
         "%loss: f32[] = aten::mean(%y) in m1 drop %y\nloss = %loss\n";
}

void expect_plain(const std::string& text, const std::string& of) {
  for (const char* forbidden : kForbidden)
    EXPECT_EQ(text.find(forbidden), std::string::npos)
        << of << ": " << testing::PrintToString(forbidden) << "\n"
        << text.substr(0, 3000);
}

class HostileText : public testing::Test {
 protected:
  HostileText() { std::ofstream(file_) << hostile_program(); }
  ~HostileText() override { std::remove(file_.c_str()); }
  const std::string file_ = testing::TempDir() + "metaprof_hostile_" + std::to_string(getpid()) + ".mp";
};

TEST_F(HostileText, IsPlainInEveryForm) {
  for (const std::string words : {"profile MODEL",
                                  "profile MODEL --per-node --granularity operator",
                                  "profile MODEL --markdown",
                                  "profile MODEL --memory 1MiB",
                                  "profile MODEL --execution graph",
                                  "profile MODEL --json -",
                                  "profile MODEL --csv -",
                                  "profile MODEL --html -",
                                  "profile MODEL --timeline -",
                                  "profile MODEL --chrome-trace -",
                                  "profile MODEL --folded -",
                                  "profile MODEL --metrics -",
                                  "profile MODEL --dot -",
                                  "profile MODEL --svg -",
                                  "graph MODEL --passes --explain",
                                  "graph MODEL --json -",
                                  "graph MODEL --dot -",
                                  "cudagraphs MODEL",
                                  "cudagraphs MODEL --dot -",
                                  "sweep MODEL --batch 2,4",
                                  "sweep MODEL --csv - --checkpoint \"none,*\"",
                                  "fit MODEL",
                                  "advise MODEL",
                                  "plan MODEL --pareto",
                                  "plan MODEL --pareto --python -",
                                  "plan MODEL --pareto --html -",
                                  "plan-input MODEL --format csv",
                                  "plan-input MODEL --format rotor",
                                  "ops --coverage MODEL"}) {
    std::string command = words;
    command.replace(command.find("MODEL"), 5, file_);
    const Outcome outcome = run_program(command);
    EXPECT_NE(outcome.exit_code, -1) << words;
    EXPECT_NE(outcome.out + outcome.err, "") << words;
    expect_plain(outcome.out, words);
    expect_plain(outcome.err, words);
  }
}

TEST_F(HostileText, MessagesAreShort) {
  const std::string word(100000, 'w');
  for (const std::string& words :
       {"profile " + word, "profile resnet18 --device " + word, "profile resnet18 --" + word, word,
        "profile resnet18 --steps " + word, "profile resnet18 --columns " + word, "ops " + word,
        "fit resnet18 --precision " + word, "run --save " + word + " -- true"}) {
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.exit_code, 2) << words.substr(0, 50);
    EXPECT_LE(outcome.err.size(), 510u) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

// CWE-1236: a cell that begins like a formula is one to a spreadsheet.
TEST_F(HostileText, CellsOfCsvAreNoFormulas) {
  const std::string csv = run_program("profile " + file_ + " --csv -").out;
  EXPECT_NE(csv.find("\n'=cmd()"), std::string::npos) << csv;
  EXPECT_EQ(csv.find("\n="), std::string::npos) << csv;
  EXPECT_EQ(csv.find(",="), std::string::npos) << csv;
}

}  // namespace
}  // namespace metaprof
