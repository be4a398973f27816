#include "tests/cli/program.h"

namespace metaprof {
namespace {

TEST(Usage, HelpBeginsWithExamples) {
  for (const char* words : {"--help", "profile --help", "ops --help", "allocator --help"}) {
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.exit_code, 0) << words;
    EXPECT_EQ(outcome.err, "") << words;
    const size_t example = outcome.out.find("  metaprof "), usage = outcome.out.find("Usage: metaprof");
    ASSERT_NE(example, std::string::npos) << outcome.out;
    ASSERT_NE(usage, std::string::npos) << outcome.out;
    EXPECT_LT(example, usage) << words;
  }
}

TEST(Usage, TheListOfCommandsHasALineForEach) {
  const std::string out = run_program("--help").out;
  EXPECT_NE(out.find("  profile                   What training steps of a model cost.\n"), std::string::npos)
      << out;
}

TEST(Usage, NoCommandAndUnknownCommandsNameThose) {
  expect_refusal("",
                 "which command? There are profile, ops, allocator, check, fit, diff, sweep, plan-input, "
                 "run, cudagraphs, advise, plan, devices; "
                 "metaprof --help "
                 "shows examples");
  expect_refusal("frobnicate",
                 "there is no command 'frobnicate'; there are profile, ops, allocator, check, fit, diff, "
                 "sweep, plan-input, run, cudagraphs, advise, plan, devices");
  expect_refusal("profil",
                 "there is no command 'profil'; there are profile, ops, allocator, check, fit, diff, sweep, "
                 "plan-input, run, cudagraphs, advise, plan, devices; did you mean 'profile'?");
}

TEST(Usage, TheVersionAndHelpAsUsual) {
  EXPECT_TRUE(run_program("--version").out.starts_with("metaprof "));
  EXPECT_EQ(run_program("help fit").out, run_program("fit --help").out);
  EXPECT_EQ(run_program("help").out, run_program("--help").out);
}

TEST(Usage, DevicesAreListedAndFound) {
  const Outcome outcome = run_program("devices");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("\nrtx4090 "), std::string::npos) << outcome.out;
  const std::string words = "profile tests/data/fixtures/base.pt2 --steps 1 --depth 0 --device ";
  EXPECT_EQ(run_program(words + "'RTX 4090'").out, run_program(words + "rtx4090").out);
  expect_refusal_with(words + "rtx4080", {"there is no device 'rtx4080'", "did you mean 'rtx4090'?"});
}

TEST(Usage, SizesNeedUnits) {
  expect_refusal("profile tests/data/fixtures/base.pt2 --memory 24", "'24' has no unit; write 24GiB, or 24B");
}

TEST(Usage, FilesThatAreNoExportsSayWhatToDo) {
  expect_refusal(
      "profile model.py",
      "model.py: is Python's text; run it, export its model with torch.export.save, and give the .pt2");
  expect_refusal(
      "profile model.safetensors",
      "model.safetensors: has weights and no program; export the model with torch.export.save and give "
      "the .pt2");
}

TEST(Usage, UnknownOptionsAreNamed) {
  expect_refusal("fit x.pt2 --devcie t4",
                 "The following arguments were not expected: t4 --devcie ('metaprof fit --help' shows the "
                 "options); did you mean '--device'?");
  expect_refusal(
      "profile x.pt2 --colour",
      "The following argument was not expected: --colour ('metaprof profile --help' shows the options)");
  expect_refusal("--colour profile",
                 "the command comes before '--colour'; there are profile, ops, allocator, check, fit, diff, "
                 "sweep, plan-input, run, cudagraphs, advise, plan, devices");
}

TEST(Usage, AMissingModelIsNamed) {
  expect_refusal("profile", "MODEL is required ('metaprof profile --help' shows the options)");
}

TEST(Usage, BadValuesSayWhatIsExpected) {
  expect_refusal("profile x.pt2 --steps abc", "--steps: 'abc' is not a whole number from 1 to 1000");
  expect_refusal("profile x.pt2 --steps 0", "--steps: '0' is not a whole number from 1 to 1000");
  expect_refusal("profile x.pt2 --sort size",
                 "--sort: there is no column 'size' of modules; there are type, parameters, saved, "
                 "forward_tmp, forward_out, backward_tmp, backward_out, flops_forward, flops_backward");
  expect_refusal("profile x.pt2 --per-node --columns accumulated,saved",
                 "--columns: there is no column 'saved' of nodes; there are type, accumulated, fwd_mem_tmp, "
                 "fwd_mem_out, save_fwd_in, parameters, fwd_mem_peak, bwd_mem_tmp, bwd_mem_out, fwd_flop, "
                 "bwd_flop, fwd_time, bwd_time");
}

TEST(Usage, FilesAndVariablesThatAreNot) {
  expect_refusal("profile tests/data/fixtures/base.pt2 --workspaces no-such.jsonl",
                 "no-such.jsonl: no such file");
  expect_refusal("profile x.pt2 --env A", "--env: 'A' is no NAME=VALUE");
}

}  // namespace
}  // namespace metaprof
