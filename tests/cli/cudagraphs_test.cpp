#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kMlp = "tests/data/models/mlp.pt2";

TEST(Cudagraphs, MeasuresTheWholeStepAsOneGraph) {
  const Outcome outcome =
      run_program("cudagraphs " + kMlp + " --whole-network --warmup 3 --workspaces none --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "metaprof.cudagraphs");
  EXPECT_EQ(json["options"]["optimizer"], "sgd-momentum");
  const Json& memory = json["memory"]["whole_network"];
  // Recorded (tests/data/cudagraphs): the pool's 92274688 B are two workspaces of cuBLAS of 32 MiB, a segment of
  // 20 MiB for the largest gradient and two of 2 MiB for what is small.
  EXPECT_EQ(memory["captured"]["segments_by_pool"]["(1, 0)"], 2 * (32 << 20) + (20 << 20) + 2 * (2 << 20));
  EXPECT_EQ(memory["replayed"], memory["captured"]);
  // 64 images of 28 x 28 in fp32 and 64 labels of 8 bytes.
  EXPECT_EQ(memory["copied_bytes_per_step"], 64 * 784 * 4 + 64 * 8);
}

// Recorded on an emulated H200: the framework ends these steps with an error, in the second backward of the first step
// and in the first of the second.
TEST(Cudagraphs, SaysThatGradientsOfTheRunBeforeAreOverwritten) {
  for (const auto& [options, place, steps] :
       {std::tuple{"--accumulate 2", "aten::add_.Tensor in backward of step 1", 1},
        std::tuple{"--zero-grad-to-none false", "aten::add_.Tensor in backward of step 2", 2}}) {
    const std::string command = "cudagraphs " + kMlp + " --tree --optimizer sgd " + options;
    const Outcome outcome = run_program(command + " --json -");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    const Json tree = Json::parse(outcome.out)["memory"]["tree"];
    EXPECT_EQ(tree["overwritten"], place);
    EXPECT_EQ(tree["steps"], steps);
    EXPECT_TRUE(tree["peak"].is_null());
    EXPECT_NE(run_program(command).out.find(
                  "ENDS WITH AN ERROR: \"accessing tensor output of CUDAGraphs that has been overwritten"),
              std::string::npos);
  }
}

// An optimizer that counts on the host is outside of a tree, and cannot be in the graph of a whole step.
TEST(Cudagraphs, CapturesNoWholeStepOfAnOptimizerThatCountsOnTheHost) {
  const Json memory =
      Json::parse(run_program("cudagraphs " + kMlp + " --optimizer adam --json -").out)["memory"];
  EXPECT_FALSE(memory.contains("whole_network"));
  EXPECT_FALSE(memory["tree"]["peak"].is_null());
  const Outcome asked = run_program("cudagraphs " + kMlp + " --optimizer adam --whole-network");
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_NE(asked.err.find("or ask for --tree or --graphed-callables"), std::string::npos);
}

TEST(Cudagraphs, SavesTheKernelsOfAStep) {
  const Json json =
      Json::parse(run_program("cudagraphs " + kMlp + " --whole-network --optimizer sgd --json -").out);
  const Outcome graph = run_program("graph " + kMlp + " --optimizer sgd --json -");
  EXPECT_EQ(json["memory"]["whole_network"]["launches_saved_per_step"].get<int>() + 1,
            Json::parse(graph.out)["execution"]["eager"]["kernels"].get<int>());
}

TEST(Cudagraphs, SaysWhatIsCapturedAndWhatATreeDoes) {
  const Json json = Json::parse(run_program("cudagraphs " + kMlp + " --tree --steps 4 --json -").out);
  ASSERT_EQ(json["graphs"].size(), 2u);
  EXPECT_EQ(json["graphs"][0]["captured"], true);
  EXPECT_EQ(json["graphs"][1]["graph"], "backward");
  const Json& tree = json["memory"]["tree"];
  // Recorded: four layers of two parameters, the images, the labels; and the gradient of the loss.
  EXPECT_EQ(tree["counters"], Json::parse("{\"cudagraph_recorded_non_static_inputs\": 11}"));
  ASSERT_EQ(tree["nodes"].size(), 4u);  // two runs to warm up, two recordings
  EXPECT_EQ(tree["nodes"][3]["parent"], 2);
  EXPECT_EQ(tree["nodes"][3]["replays"], 2);
  EXPECT_TRUE(tree["not_modelled"].is_null());
  EXPECT_EQ(tree["reserved"], 88080384);  // recorded (tests/data/cudagraphs)
  const Outcome dot = run_program("cudagraphs " + kMlp + " --tree --dot -");
  EXPECT_EQ(dot.out,
            "digraph cudagraphs {\n  node [shape=box];\n"
            "  n2 [label=\"forward\\n10 inputs copied\\nreplayed 2 times\"];\n"
            "  n3 [label=\"backward\\n1 inputs copied\\nreplayed 2 times\"];\n  n2 -> n3;\n}\n");
}

TEST(Cudagraphs, RequireMakesASkippedGraphAFinding) {
  EXPECT_EQ(run_program("cudagraphs " + kMlp + " --require").exit_code, 0);
  const std::string file = testing::TempDir() + "metaprof_moves_" + std::to_string(getpid()) + ".mp";
  std::ofstream(file) << "metaprof program 1\n"
                         "parameter w = %w: f32[3] grad\n"
                         "input x = %x: f32[3]\n"
                         "%z: f32[3] = aten::add_.Scalar(%x, 1)\n"
                         "%y: f32[3] = aten::mul.Tensor(%z, %w)\n"
                         "%loss: f32[] = aten::mean(%y)\n"
                         "loss = %loss\n";
  const Outcome outcome = run_program("cudagraphs " + file + " --require");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.out.find("forward: skipped: input x is written to: aten::add_.Scalar") !=
              std::string::npos)
      << outcome.out;
  std::remove(file.c_str());
}

TEST(Cudagraphs, ATreeOfARecurrentNetworkTakesAnotherBatch) {
  const Outcome outcome =
      run_program("cudagraphs tests/data/cudagraphs/models/half_eager.pt2 --tree --batch 4 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // The loss takes what the eager part hands on, and labels; its backward the gradient of the loss.
  EXPECT_EQ(Json::parse(outcome.out)["memory"]["tree"]["counters"]["cudagraph_recorded_non_static_inputs"],
            3);
}

// A step of `mean(x * w)`, as a run of it is written down; what stands between the setup and the end.
std::string captured_step(const std::string& named, const std::string& forward) {
  return "metaprof program 1\n"
         "captured torch 2.11.0+cu130 device h200 memory 150121545728\n"
         "step::phase(\"setup\", 0, -1)\n"
         "%0: f32[3] on cpu grad = step::tensor()\n"
         "%1: f32[3] = aten::to.dtype_layout(%0, dtype=f32, layout=0, device=device(model))\n"
         "step::set_data(%0, %1) drop %1\n" +
         named +
         "%2: f32[3] on cpu = step::tensor()\n"
         "%3: f32[3] = aten::to.dtype_layout(%2, dtype=f32, layout=0, device=device(model)) drop %2\n"
         "step::phase(\"forward\", 0, -1)\n" +
         forward;
}
const std::string kNamed = "step::name(\"parameter\", \"w\", %0)\n";
const std::string kForward =
    "%4: f32[3] = aten::mul.Tensor(%3, %0)\n"
    "%5: f32[] = aten::mean(%4) drop %4\n";
const std::string kBackward =
    "step::phase(\"backward\", 0, -1)\n"
    "step::backward([%5], [None], False, False, tensors[], True) drop %5\n";

Outcome run_text(const std::string& text, const std::string& options) {
  const std::filesystem::path folder = testing::TempDir() + "metaprof_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "metaprof_captured.mp").string();
  std::ofstream(file) << text;
  Outcome outcome = run_program("cudagraphs " + file + " --json - " + options);
  std::remove(file.c_str());
  return outcome;
}

TEST(Cudagraphs, TheModelOfACapturedProgramIsCapturedAsItsExportIs) {
  const std::string both = "--whole-network --graphed-callables --tree --workspaces none";
  const Outcome captured = run_text(captured_step(kNamed, kForward + kBackward), both);
  const Outcome exported = run_text(
      "metaprof program 1\n"
      "parameter w = %w: f32[3] grad\n"
      "input input_1 = %x: f32[3]\n"
      "%y: f32[3] = aten::mul.Tensor(%x, %w)\n"
      "%loss: f32[] = aten::mean(%y) drop %y\n"
      "loss = %loss\n",
      both + " --framework 2.11");
  ASSERT_EQ(captured.exit_code, 0) << captured.err;
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(Json::parse(captured.out)["graphs"], Json::parse(exported.out)["graphs"]);
  EXPECT_EQ(Json::parse(captured.out)["memory"], Json::parse(exported.out)["memory"]);
  EXPECT_NE(captured.err.find("its last step's forward is what is captured here, with the lifetimes of the "
                              "run; what the program holds beside its model, its inputs and its optimizer is "
                              "not counted"),
            std::string::npos)
      << captured.err;
}

TEST(Cudagraphs, RegionsOfAutocastAroundACapturedForwardAreKept) {
  const Outcome outcome = run_text(
      captured_step(kNamed + "step::autocast_enter(True, bf16, True)\n",
                    kForward + "step::phase(\"backward\", 0, -1)\nstep::autocast_leave()\n" + kBackward),
      "--whole-network --workspaces none");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(Json::parse(outcome.out)["memory"]["whole_network"].is_null()) << outcome.err;
}

TEST(Cudagraphs, StepsWhoseModelCannotBeRunAloneAreJudgedByWhatTheyDid) {
  const auto expect_judged = [](const std::string& text, const std::string& why) {
    const Outcome outcome = run_text(text, "");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    ASSERT_EQ(json["graphs"].size(), 2u);
    EXPECT_TRUE(json["memory"].empty());
    EXPECT_NE(
        outcome.err.find(why + ". So metaprof_captured, which was captured from a run, is judged by what "
                               "its steps did: inputs that it writes to are not looked for, and what its "
                               "steps would take as graphs is not modelled; give an export of the model "
                               "for both"),
        std::string::npos)
        << outcome.err;
  };
  expect_judged(captured_step("", kForward + kBackward), "it names no parameter");
  expect_judged(captured_step(kNamed, kForward), "no forward of it is followed by a backward");
  expect_judged(captured_step(kNamed, kForward + "step::stream(1)\n" + kBackward),
                "its forward calls step::stream, which belongs to the whole step: its model cannot be looked "
                "at alone");
  expect_judged(captured_step(kNamed,
                              "%4: f32[3] = aten::mul.Tensor(%3, %0)\n"
                              "step::phase(\"backward\", 0, -1)\n"
                              "%5: f32[] = aten::mean(%4) drop %4\n"
                              "step::backward([%5], [None], False, False, tensors[], True) drop %5\n"),
                "its backward does not begin with one loss that its forward has made");
}

TEST(Cudagraphs, SourceLinesAreMissedWhereACapturedProgramIsLeftToPython) {
  const Outcome outcome = run_text(
      captured_step(
          kNamed,
          "%6: f32[2,1,3] = aten::zeros([2, 1, 3], device=device(model))\n"
          "%7: f32[1,1,3] = aten::zeros([1, 1, 3], device=device(model))\n"
          "%8: f32[9,3] = aten::zeros([9, 3], device=device(model))\n"
          "%9: f32[2,1,3] = aten::mul.Tensor(%6, %0) drop %6\n"
          "%10: f32[2,1,3], %11: f32[1,1,3] = aten::gru.input(%9, %7, [%8, %8], False, 1, 0.0, True, "
          "False, False) drop %7, %8, %9\n"
          "%5: f32[] = aten::mean(%10) drop %10, %11\n" +
              kBackward),
      "--tree");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["memory"]["tree"]["not_modelled"],
            "where the compiler leaves a model to Python is told from the source lines of an export")
      << outcome.err;
}

TEST(Cudagraphs, WhatACapturedForwardCallsCannotBeOtherwise) {
  const Outcome outcome = run_text(captured_step(kNamed, kForward + kBackward), "--precision bf16");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--precision: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("was captured from a run, whose forward is its own"), std::string::npos)
      << outcome.err;
}

TEST(Cudagraphs, SaysThatACaptureWouldBeRefused) {
  const std::string file = testing::TempDir() + "metaprof_reads_" + std::to_string(getpid()) + ".mp";
  std::ofstream(file) << "metaprof program 1\n"
                         "parameter w = %w: f32[3] grad\n"
                         "input x = %x: f32[3]\n"
                         "%n: i64[2,1] = aten::nonzero(%x)\n"
                         "%y: f32[3] = aten::mul.Tensor(%x, %w)\n"
                         "%loss: f32[] = aten::mean(%y)\n"
                         "loss = %loss\n";
  const Outcome outcome = run_program("cudagraphs " + file + " --whole-network");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(
      outcome.err.find("forward cannot be captured, so that the figures of the whole step as one graph are "
                       "those of a capture that would go through: the host waits for the device and reads "
                       "data: aten::nonzero") != std::string::npos)
      << outcome.err;
  std::remove(file.c_str());
}

TEST(Cudagraphs, RefusesWhatTheFrameworkCannotCapture) {
  expect_refusal(
      "cudagraphs " + kMlp + " --whole-network --optimizer adamw",
      "--optimizer adamw: it counts its steps on the host, so that the framework refuses to capture "
      "the whole step; sgd, sgd-momentum and adamw-capturable can be captured; or ask for --tree or "
      "--graphed-callables");
  expect_refusal(
      "cudagraphs " + kMlp + " --precision amp-fp16",
      "--precision amp-fp16: gradient scaling reads on the host whether gradients overflow, which no "
      "capture allows; amp-bf16 needs none");
  expect_refusal("cudagraphs " + kMlp + " --execution graph",
                 "--execution graph: what is captured is run operator by operator; leave the option out");
  expect_refusal("cudagraphs " + kMlp + " --mode eval",
                 "--mode eval: what is captured is a training step; leave the option out");
  expect_refusal("cudagraphs " + kMlp + " --device cpu", "--device cpu: CUDA graphs are of CUDA devices");
}

}  // namespace
}  // namespace metaprof
