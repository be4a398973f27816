// Captured programs as models: tests/data/captured/checkpoints.mp is what checkpoints.py beside it did.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kProgram = "tests/data/captured/checkpoints.mp";

std::string temporary(const std::string& name) {
  return testing::TempDir() + "metaprof_captured_" + std::to_string(getpid()) + name;
}

TEST(CapturedProgram, IsComparedWithItsOwnRun) {
  const Outcome outcome = run_program("check " + kProgram + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(outcome.out)["summary"][0];
  EXPECT_EQ(summary["recording"], "checkpoints");
  EXPECT_EQ(summary["phases"], 13);  // setup, and four of each of three steps
  EXPECT_EQ(summary["exact_phases"], 13);
  EXPECT_EQ(summary["peak_reserved_error"], 0.0);
  EXPECT_TRUE(summary["first_difference"].is_null()) << summary;
}

// A checkpoint with early_stop=False recomputes the last product, too, which backward does not need.
TEST(CapturedProgram, ACheckpointThatIsRecomputedToItsEndIsEqualToItsRun) {
  const Outcome outcome = run_program("check tests/data/captured/checkpoints_whole.mp --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(outcome.out)["summary"][0];
  EXPECT_EQ(summary["exact_phases"], 13) << summary;
  EXPECT_TRUE(summary["first_difference"].is_null()) << summary;
}

// The programs of examples/run as `metaprof run --save` captured them with torch 2.11.0 (docs/reference/run.md): adam8bit to zero3.
TEST(CapturedProgram, WhatExamplesRanIsEqualToTheirRuns) {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator("tests/data/captured/run")) {
    const Outcome outcome = run_program("check " + file.path().string() + " --json -");
    ASSERT_EQ(outcome.exit_code, 0) << file.path() << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["exact_phases"], summary["phases"]) << summary;
    EXPECT_EQ(summary["peak_allocated_error"], 0.0) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
    ++count;
  }
  EXPECT_EQ(count, 17u);
}

// What transforms of torch.func call below their wrappers: gradients of gradients of tasks, Jacobians of batches, an ensemble, a custom
// function that is vectorized.
TEST(CapturedProgram, TransformsAreEqualToTheirRuns) {
  for (const std::string name : {"maml", "jacobian", "ensemble", "vmapped_function"}) {
    const Outcome outcome = run_program("check tests/data/captured/" + name + ".mp --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["exact_phases"], summary["phases"]) << summary;
    EXPECT_EQ(summary["peak_allocated_error"], 0.0) << summary;
    EXPECT_EQ(run_program("profile tests/data/captured/" + name + ".mp --strict").exit_code, 0) << name;
  }
}

// Flex attention that is not compiled computes scores, applies functions to them and to a mask, each under transforms. A bias that is
// learned gets its gradient by an operator of the framework's that is written in Python.
TEST(CapturedProgram, FlexAttentionIsEqualToItsRun) {
  for (const std::string name : {"flex", "flex_bias"}) {
    const std::string program = "tests/data/captured/" + name + ".mp";
    const Outcome outcome = run_program("check " + program + " --json -");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json report = Json::parse(outcome.out), summary = report["summary"][0];
    EXPECT_EQ(summary["phases"], 13) << summary;  // setup, and four of each of three steps
    EXPECT_EQ(summary["exact_phases"], 13) << summary;
    EXPECT_EQ(summary["peak_allocated_error"], 0.0) << summary;
    const Outcome profile = run_program("profile " + program + " --json -");
    EXPECT_EQ(Json::parse(profile.out)["unmodelled"], Json::array()) << profile.err;
  }
}

// An export of compiled flex attention against its run: every phase, but the peak of the setup, in which the run makes its mask.
TEST(CapturedProgram, FlexAttentionOfAnExportIsThatOfACompiledRun) {
  const std::string file = "tests/data/captured/flex_compiled";
  const Outcome run = run_program("check " + file + ".mp --json -");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Outcome outcome =
      run_program("profile " + file + ".pt2 --device h200 --workspaces none --optimizer adamw --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("calls of flex attention (1) are taken to be compiled"), std::string::npos)
      << outcome.err;
  const Json report = Json::parse(outcome.out), rows = Json::parse(run.out)["rows"];
  EXPECT_EQ(report["unmodelled"], Json::array());
  // 2 of batch, 4 heads, 256 queries and keys, heads of 32: two products of 2 · 2 · 4 · 256 · 256 · 32; five in backward.
  EXPECT_EQ(report["flops_all"]["by_op"]["metaprof.flex_attention"]["forward"], 2 * 33554432);
  EXPECT_EQ(report["flops_all"]["by_op"]["metaprof.flex_attention_backward"]["backward"], 5 * 33554432);
  size_t compared = 0;
  for (const Json& row : rows) {
    const std::string field = row["field"];
    if (row["phase"] == "setup" ||
        !(field.starts_with("allocated_bytes") || field.starts_with("requested_bytes")))
      continue;
    for (const Json& phase : report["phases"]) {
      if (phase["phase"] != row["phase"] || phase.value("step", -1) != row["step"]) continue;
      const size_t dot = field.find('.');
      EXPECT_EQ(phase[field.substr(0, dot)][field.substr(dot + 1)], row["recorded"]) << row;
      ++compared;
    }
  }
  EXPECT_EQ(compared,
            3u * 4 * 4);  // steps, phases, and allocated and requested bytes at the end and at the peak
}

// Nested tensors of jagged layout (tests/data/captured/jagged.py): what their operators call on the values, forward and backward.
TEST(CapturedProgram, NestedTensorsAreEqualToTheirRuns) {
  for (const std::string name : {"transformer", "transformer_f32", "pooling", "norms", "joined", "padded",
                                 "recommender", "cross", "unbound", "offsets"}) {
    const std::string file = "tests/data/captured/jagged_" + name + ".mp";
    const Outcome outcome = run_program("check " + file + " --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["phases"], 13) << name;  // setup, and four of each of three steps
    EXPECT_EQ(summary["exact_phases"], 13) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
    EXPECT_TRUE(summary["first_difference"].is_null()) << summary;
    EXPECT_EQ(run_program("profile " + file + " --strict").exit_code, 0) << name;
  }
}

// Systems of equations of eight sizes, which cuBLAS, cuSOLVER and MAGMA share by rules; weights that are computed when they are read.
TEST(CapturedProgram, LinearAlgebraIsEqualToItsRun) {
  for (const auto& [name, phases] : {std::pair("systems", 17), std::pair("parametrized", 8)}) {
    const Outcome outcome = run_program(std::string("check tests/data/captured/") + name + ".mp --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["phases"], phases) << summary;
    EXPECT_EQ(summary["exact_phases"], phases) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
  }
}

// A copy of a model with buffers, made on the device; actions drawn from distributions, which are checked there.
TEST(CapturedProgram, CopiedModelsAndPoliciesAreEqualToTheirRuns) {
  for (const std::string name : {"averaged", "policy"}) {
    const std::string file = "tests/data/captured/" + name + ".mp";
    const Outcome outcome = run_program("check " + file + " --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_GE(summary["phases"], 8) << summary;
    EXPECT_EQ(summary["exact_phases"], summary["phases"]) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
    EXPECT_EQ(run_program("profile " + file + " --strict").exit_code, 0) << name;
  }
}

// Convolutions of bf16 before compute capability 8.0, which are computed by columns: plain, in groups, dilated, transposed, of one and three
// dimensions, depthwise (tests/data/captured/slow_convolutions.py).
TEST(CapturedProgram, ConvolutionsWithoutCudnnAreEqualToTheirRun) {
  const std::string file = "tests/data/captured/slow_convolutions.mp";
  const Outcome outcome = run_program("check " + file + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(outcome.out)["summary"][0];
  EXPECT_EQ(summary["phases"], 9) << summary;  // setup, and four of each of two steps
  EXPECT_EQ(summary["exact_phases"], 9) << summary;
  EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
}

// A run that ended in its first step has no step that other options could change.
TEST(CapturedProgram, OfARunWithoutAWholeStepIsRefused) {
  const std::string file = testing::TempDir() + "unfinished.mp";
  const std::string edit =
      "gzip -dc tests/data/captured/policy.mp | sed '/^captured torch/s/$/ unfinished \"ValueError in "
      "forward of "
      "step 1\"/' > " +
      file;
  ASSERT_EQ(std::system(edit.c_str()), 0);
  for (const std::string command : {"profile ", "fit ", "sweep ", "advise ", "plan --budget 50% "}) {
    const Outcome outcome = run_program(command + file);
    EXPECT_EQ(outcome.exit_code, 2) << command << outcome.out;
    EXPECT_EQ(outcome.err, "metaprof: " + file +
                               ": the run was ended by ValueError in forward of step 1, so what a whole step "
                               "takes is not known: run "
                               "it to the end of a step, with more --memory if it ran out\n")
        << command;
  }
  EXPECT_EQ(run_program("check " + file).exit_code, 0);
}

// torchvision's operators for regions and shifted places, in fp32 and under autocast (tests/data/captured/vision_operators.py).
TEST(CapturedProgram, OperatorsOfDetectorsAreEqualToTheirRuns) {
  for (const std::string name : {"vision_operators", "vision_operators_amp"}) {
    const Outcome outcome = run_program("check tests/data/captured/" + name + ".mp --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["phases"], 9) << summary;  // setup, and four of each of two steps
    EXPECT_EQ(summary["exact_phases"], 9) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
  }
}

// In eval mode and without gradients an encoder's layer is one operator (tests/data/captured/encoder.py).
TEST(CapturedProgram, EncoderLayersInEvalModeAreEqualToTheirRuns) {
  for (const std::string name : {"encoder", "encoder_masked"}) {
    const Outcome outcome = run_program("check tests/data/captured/" + name + ".mp --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["exact_phases"], summary["phases"]) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
  }
}

// Packed sequences, whose batch sizes are data on the host: an LSTM in both directions, GRU and RNN.
TEST(CapturedProgram, PackedSequencesAreEqualToTheirRuns) {
  for (const std::string name : {"packed", "packed_gru"}) {  // run without cuDNN's sizes
    const Outcome outcome =
        run_program("check tests/data/captured/" + name + ".mp --workspaces none --json -");
    ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
    const Json summary = Json::parse(outcome.out)["summary"][0];
    EXPECT_EQ(summary["phases"], 9);  // setup, and four of each of two steps
    EXPECT_EQ(summary["exact_phases"], 9) << summary;
    EXPECT_EQ(summary["peak_reserved_error"], 0.0) << summary;
  }
}

// Compiling is the only part of them that is not understood.
TEST(CapturedProgram, StrictRefusesWhatACompilerCalled) {
  const std::string compiled = "tests/data/captured/run/compiled.mp";
  const Outcome outcome = run_program("profile " + compiled + " --strict");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("torch.compile, while it compiles: what they call is not in the program; 4 of "),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(run_program("profile tests/data/captured/run/fsdp2.mp --strict").exit_code, 0);
}

TEST(CapturedProgram, TheFirstRequestThatDiffersIsNamed) {
  const std::string file = temporary(".mp");
  ASSERT_EQ(run_program("profile " + kProgram + " --workspaces none --write-program " + file).exit_code, 0);
  std::string text = read_file(file);
  // The last results of the optimizer live on.
  const size_t call = text.find("_foreach_addcdiv_"), drop = text.find(" drop ", call);
  text.erase(drop, text.find('\n', drop) - drop);
  std::ofstream(file) << text;
  const Outcome outcome = run_program("check " + file + " --json -");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json summary = Json::parse(outcome.out)["summary"][0];
  ASSERT_FALSE(summary["first_difference"].is_null());
  // Eight temporaries of _foreach_sqrt; a weight of 256 times 256 floats or a bias of 256.
  EXPECT_TRUE(summary["first_difference"]["recorded"] == "- 262144" ||
              summary["first_difference"]["recorded"] == "- 1024")
      << summary;
}

TEST(CapturedProgram, TheTextThatIsWrittenIsTheSameAgain) {
  const std::string once = temporary("_once.mp"), twice = temporary("_twice.mp");
  ASSERT_EQ(run_program("profile " + kProgram + " --write-program " + once).exit_code, 0);
  ASSERT_EQ(run_program("profile " + once + " --write-program " + twice).exit_code, 0);
  EXPECT_EQ(read_file(once), read_file(twice));
}

TEST(CapturedProgram, StepsAreItsOwn) {
  expect_refusal("profile " + kProgram + " --clip-norm 1",
                 "--clip-norm: " + kProgram + " was captured from a run, whose steps are its own");
  expect_refusal("profile " + kProgram + " --steps 4",
                 "--steps 4: " + kProgram + " was captured from a run of 3 steps");
}

// checkpoints.mp ran on an h200; the text of a program says where else it might have run.
std::string captured_on(const std::string& device, const std::string& rest) {
  std::string file = temporary("_on_" + device + ".mp");
  std::ofstream(file) << "metaprof program 1\ncaptured torch 2.11.0 device " << device << rest
                      << "\nstep::phase(\"setup\", 0, -1)\n%0: f32[1024] = aten::zeros([1024], "
                         "device=device(model))\n";
  return file;
}

TEST(CapturedProgram, IsRunWhereItWasCaptured) {
  const std::string file = captured_on("a100", " memory 25769803776 workspaces none");
  const Outcome outcome = run_program("profile " + file + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["device"], "a100");
  EXPECT_EQ(report["device_memory"], 25769803776);  // 24 GiB
  EXPECT_EQ(report["options"]["workspaces"], "none");
  EXPECT_EQ(report["of_run"], Json::array({"device", "memory", "workspaces"}));
  EXPECT_NE(run_program("profile " + file)
                .out.find("as in the run that was captured, unless asked for: device, memory, workspaces\n"),
            std::string::npos);
}

TEST(CapturedProgram, WhatIsAskedForOutranksItsRun) {
  const std::string file = captured_on("a100", " memory 25769803776 workspaces none");
  const Outcome outcome = run_program("profile " + file + " --device h200 --workspaces auto --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["device"], "h200");               // which is the usual one, but was asked for
  EXPECT_EQ(report["device_memory"], 150121480192);  // 139.8 GiB
  EXPECT_EQ(report["options"]["workspaces"], "auto");
  EXPECT_EQ(report["of_run"], Json::array());
}

TEST(CapturedProgram, OtherCommandsRunItThereToo) {
  const std::string file = captured_on("a100", " memory 85899345920");
  for (const char* command : {"sweep ", "advise ", "cudagraphs "}) {
    const Outcome outcome = run_program(command + file + " --json -");
    EXPECT_NE(outcome.out.find("\"a100\""), std::string::npos) << command << outcome.out << outcome.err;
  }
}

TEST(CapturedProgram, ADeviceThatIsNotKnownIsNamed) {
  const std::string file = captured_on("mine", " memory 1024");
  expect_refusal("profile " + file,
                 file +
                     ": was captured on the device 'mine', which is not known; name it, or another one, "
                     "with --device");
}

TEST(CapturedProgram, WithoutAMeasurementThereIsNothingToCompare) {
  const std::string file = temporary("_bare.mp");
  std::ofstream(file) << "metaprof program 1\ncaptured torch 2.11.0\nstep::phase(\"setup\", 0, -1)\n";
  expect_refusal("check " + file, file + ": has no measurement of its own: name one with --against");
}

TEST(CapturedProgram, IsSavedUnderANameThatSaysWhatItIs) {
  expect_refusal("run --save step.txt -- python train.py",
                 "--save step.txt: the file's name must end in .mp");
}

}  // namespace
}  // namespace metaprof
