// Small programs, each with a way in which Python keeps tensors alive: what is known of them from their exports alone
// (tests/data/lifetimes, by tools/lifetime_programs.py with PyTorch 2.11 on the emulated device), against what they took.

#include <filesystem>
#include <map>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

// An export does not show these. A program that is equal is to be taken from the list.
const std::map<std::string, std::string> kDiffer = {
    {"DeletedEarly", "`del` leaves no mark"},
    {"Function", "a function that leaves no frame holds its argument until it returns"},
    {"ListIndexed", "an assigned element goes when it is assigned again"},
    {"Locals", "variables of a function that leaves no frame"},
    {"Popped", "what a list holds can be taken from it"},
    {"TwoInALine", "several statements in a line look like one"},
    {"WalrusInACondition", "a name that an expression binds on the way"}};

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

}  // namespace
}  // namespace metaprof
