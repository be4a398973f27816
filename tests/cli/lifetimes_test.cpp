// Small programs, each with a way in which Python keeps tensors alive: what is known of them from their exports alone
// (tests/data/lifetimes, by tools/record/lifetime_programs.py with PyTorch 2.11 on the emulated device), against what they took.

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

// An export does not show these; the report says so, with this reason. A program that is equal is to be taken from the
// list.
const std::map<std::string, std::string> kDiffer = {
    {"DeletedEarly", "a variable may have been deleted"},
    {"Function", "a function or method was called"},  // which holds its argument until it returns
    {"ListIndexed", "an element was assigned"},
    {"Locals", "a function or method was called"},
    {"Popped", "a list may have let it go"},
    {"TwoInALine", "several statements stand in a line"},
    {"WalrusInACondition", "an expression binds a name (:=)"}};

constexpr const char* kNote = "Note: when tensors of the forward go is guessed";

TEST(Lifetimes, OfSmallProgramsAreThoseOfTheirRuns) {
  int equal = 0, programs = 0;
  for (const auto& file : std::filesystem::directory_iterator("tests/data/lifetimes")) {
    if (file.path().extension() != ".json") continue;
    const std::string name = file.path().stem();
    const std::string model = std::filesystem::path(file.path()).replace_extension(".pt2");
    const Outcome check = run_program("check " + model + " --against " + file.path().string() +
                                      " --tolerance 0% --workspaces none");
    const bool is_equal =
        check.out.find("allocated and requested bytes of every phase equal: 1 of 1") != std::string::npos &&
        check.out.find("peak of reserved bytes equal: 1 of 1") != std::string::npos;
    EXPECT_EQ(is_equal, !kDiffer.contains(name)) << name << check.out << check.err;
    equal += is_equal;
    ++programs;
  }
  EXPECT_EQ(programs, 64);
  EXPECT_EQ(equal, 57);
}

TEST(Lifetimes, ThatAreGuessedAreInTheReport) {
  for (const auto& [name, why] : kDiffer) {
    const std::string model = "tests/data/lifetimes/" + name + ".pt2";
    const std::string text = run_program("profile " + model + " --workspaces none").out;
    EXPECT_NE(text.find(kNote), std::string::npos) << name << text;
    const auto rows =
        nlohmann::json::parse(run_program("profile " + model + " --json -").out)["guessed_lifetimes"];
    const bool says_why = std::ranges::any_of(rows, [&reason = why](const auto& row) {
      return row["why"].template get<std::string>().starts_with(reason);
    });
    EXPECT_TRUE(says_why) << name << rows;
  }
}

// Frames and statements tell all of these.
TEST(Lifetimes, ThatAreKnownAreNotInTheReport) {
  for (const std::string name : {"Chain", "Sequential", "OneExpression", "Nested", "Rebound", "Appended"}) {
    const std::string model = "tests/data/lifetimes/" + name + ".pt2";
    EXPECT_EQ(run_program("profile " + model + " --workspaces none").out.find(kNote), std::string::npos)
        << name;
    EXPECT_FALSE(nlohmann::json::parse(run_program("profile " + model + " --json -").out)
                     .contains("guessed_lifetimes"));
  }
}

}  // namespace
}  // namespace metaprof
