// Archives of torch.jit.save on the command line.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using nlohmann::json;

const std::string kResnet = "tests/data/torchscript/resnet18.pt";
const std::string kInputs = " --input 'x=f32[2,3,64,64]' --input 'labels=i64[2]' --workspaces none ";

TEST(ScriptArchiveCommands, TakeInputs) {
  for (const std::string command :
       {"profile", "graph", "sweep --device h200", "fit --device h200", "plan --budget 10GiB"}) {
    const Outcome outcome = run_program(fmt::format("{} {}{}", command, kResnet, kInputs));
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
  }
}

TEST(ScriptArchiveCommands, ModulesAndModesAreTheArchives) {
  const json train = json::parse(run_program("profile " + kResnet + kInputs + "--json -").out);
  const json evaluation =
      json::parse(run_program("profile " + kResnet + kInputs + "--mode inference --json -").out);
  EXPECT_EQ(train["modules"][1]["path"], "model");
  EXPECT_EQ(train["modules"][1]["type"], "torchvision.models.resnet.ResNet");
  EXPECT_EQ(evaluation["flops"]["backward"], 0);
  const json gradients =
      json::parse(run_program("profile " + kResnet + kInputs + "--mode eval --json -").out);
  EXPECT_EQ(gradients["flops"]["forward"], evaluation["flops"]["forward"]);
  EXPECT_GT(gradients["saved"]["bytes"], 0);
  EXPECT_GT(train["flops"]["backward"].get<int64_t>(), 0);
}

TEST(ScriptArchiveCommands, TheGraphIsSaidToHaveNoBranches) {
  const std::string warning = "PyTorch's graph keeps branches and loops";
  for (const std::string command : {"graph ", "profile --execution graph "}) {
    const Outcome graph = run_program(fmt::format("{}{}{}", command, kResnet, kInputs));
    EXPECT_NE(graph.err.find(warning), std::string::npos) << graph.err;
    EXPECT_NE(graph.out.find(" of the archive were followed: PyTorch's graph keeps them"), std::string::npos)
        << graph.out;
  }
  const Outcome eager = run_program("profile " + kResnet + kInputs);
  EXPECT_EQ(eager.err.find(warning), std::string::npos) << eager.err;
}

TEST(ScriptArchiveCommands, Refusals) {
  expect_refusal("profile " + kResnet,
                 kResnet + ": forward takes x, labels; say what x is: --input x=f32[8,3,224,224]");
  expect_refusal(
      "profile " + kResnet + kInputs + "--sequence 3",
      kResnet + ": an archive of torch.jit.save takes --input and --batch, and no --sequence or --set");
  expect_refusal("profile tests/data/torchscript/loops.pt --input times=1 --batch 3",
                 "--batch: no --input is a tensor with a size, as x=f32[8,3,224,224]");
  expect_refusal("profile resnet50 --input 'x=f32[1]'",
                 "--input: resnet50 says what it takes; --set NAME=SHAPE changes it, and only archives of "
                 "torch.jit.save need "
                 "--input");
}

}  // namespace
}  // namespace metaprof
