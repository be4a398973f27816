// Modules of the user's Python: what is said where that Python cannot give them. python/tests/test_named.py has those that it can.

#include <gtest/gtest.h>

#include "program.h"

namespace metaprof {
namespace {

TEST(NamedModule, APythonThatCannotGiveItIsNamed) {
  const auto refused = [](const std::string& words, const std::string& environment) {
    const Outcome outcome = run_program(words, environment);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(refused("profile timm:resnet18", "METAPROF_PYTHON=/nonexistent "),
            "metaprof: /nonexistent: there is no such program\n");
  EXPECT_EQ(refused("profile timm:resnet18 --interpreter /nonexistent", ""),
            "metaprof: /nonexistent: there is no such program\n");
  EXPECT_EQ(refused("fit model.py:make", "METAPROF_PYTHON=/bin/false "),
            "metaprof: model.py:make: /bin/false ended with status 1 before its steps were captured\n");
  EXPECT_EQ(refused("profile timm:resnet18", "METAPROF_PACKAGE=/tmp "),
            "metaprof: METAPROF_PACKAGE=/tmp: there is no metaprof/_door.py in it\n");
}

// What is no library and no file of Python is looked for as before.
TEST(NamedModule, OtherNamesWithColonsAreFiles) {
  expect_refusal_with("profile keras:resnet18", {"keras:resnet18: no such file"});
  expect_refusal_with("profile timm:", {"timm:: no such file"});
}

}  // namespace
}  // namespace metaprof
