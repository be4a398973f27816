#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kBase = "tests/data/fixtures/base.pt2";  // Linear(4, 3), relu, cross-entropy
const std::string kTrace = "tests/data/traces/two_layers.trace";

std::string temporary(const std::string& name) {
  return testing::TempDir() + "metaprof_profile_test_" + std::to_string(getpid()) + name;
}

TEST(Profile, BeginsWithWhetherItFitsAndShowsATable) {
  const Outcome outcome = run_program("profile " + kBase + " --optimizer none");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // Two workspaces of 32 MiB and a segment of 2 MiB for the rest; 132 · 2048 threads of 1 KiB and 498 MiB; of 143167 MiB.
  EXPECT_TRUE(
      outcome.out.starts_with("FITS h200: needs 66.0 MiB + 762.0 MiB outside the allocator of 139.8 GiB, "
                              "margin 0 %; 139.0 GiB stay free\nbase on NVIDIA H200 (h200), PyTorch 2.11.0, "
                              "which wrote the model\ninputs "))
      << outcome.out;
  EXPECT_NE(outcome.out.find("\n(root) "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("parameters: 15 in 2 tensors, 60 B; trainable: 15\n"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << "a file is no terminal";
}

TEST(Profile, JsonGoesToAFileBesideTheText) {
  const std::string file = temporary("beside.json");
  const Outcome outcome = run_program("profile " + kBase + " --optimizer none --json " + file);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("FITS h200")) << outcome.out;
  const Json json = Json::parse(read_file(file));
  EXPECT_EQ(json["schema"], "metaprof.profile");
  EXPECT_EQ(json["model"], "base");
  EXPECT_EQ(json["parameters"]["count"], 15);
  EXPECT_EQ(json["options"]["optimizer"], "none");
  EXPECT_EQ(json["phases"].size(), 1u + 3 * 2) << "setup, and forward and backward of three steps";
}

TEST(Profile, SaysWhichStepsRepeat) {
  const std::string file = temporary("steps.json");
  const Outcome outcome = run_program("profile tests/data/models/mlp.pt2 --steps 1000 --json " + file);
  EXPECT_NE(outcome.out.find("steps 1000 (all after step 2 as that one)"), std::string::npos) << outcome.out;
  const Json json = Json::parse(read_file(file));
  EXPECT_EQ(json["steps_run"], 2);
  EXPECT_EQ(json["phases"].size(), 1u + 1000 * 4) << "setup, and the four phases of each step";
}

TEST(Profile, JsonOnStdoutIsAllThereIs) {
  const Outcome outcome = run_program("profile " + kBase + " --optimizer none --steps 1 --json -");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(Json::parse(outcome.out)["phases"].size(), 3u);
}

TEST(Profile, WhatItWritesFollowsTheSchema) {
  const std::string file = temporary("schema.json");
  ASSERT_EQ(run_program("profile " + kBase + " --optimizer none --json " + file).exit_code, 0);
  const int status = std::system(
      (METAPROF_PYTHON " tests/validate_json.py reports/schema/profile.schema.json " + file).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A first request takes a segment of 2 MiB, however small it is.
TEST(Profile, ADeviceThatIsTooSmallIsAFinding) {
  const Outcome outcome = run_program("profile " + kTrace + " --memory 1MiB --json -");
  EXPECT_EQ(outcome.exit_code, 1);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["out_of_memory"]["phase"], "setup");
  EXPECT_EQ(json["out_of_memory"]["requested"], 256);
  EXPECT_EQ(json["out_of_memory"]["needed_memory"], 2 << 20);
  EXPECT_EQ(json["phases"].size(), 1u);
  EXPECT_TRUE(
      run_program("profile " + kTrace + " --memory 1MiB --context none")
          .out.starts_with("DOES NOT FIT h200: needs 2.0 MiB of 1.0 MiB, margin 0 %; 1.0 MiB are missing\n"));
}

// The trace's storages are all small: each is rounded up to 512 bytes, or 1024, in one segment of 2 MiB.
TEST(Profile, MemoryIsThatOfTheFrameworksAllocator) {
  const Json json = Json::parse(run_program("profile " + kTrace + " --json -").out);
  const Json& setup = json["phases"][0];
  EXPECT_EQ(setup["requested_bytes"]["current"], 256 + 128 + 8 + 8 + 128);
  EXPECT_EQ(setup["allocated_bytes"]["current"], 5 * 512);
  EXPECT_EQ(setup["reserved_bytes"]["current"], 2 << 20);
  EXPECT_EQ(setup["inactive_split_bytes"]["current"], (2 << 20) - 5 * 512);
  EXPECT_EQ(setup["allocation"]["current"], 5);
  EXPECT_EQ(setup["segment"]["current"], 1);
}

TEST(Profile, TheHostsMemoryIsNotCached) {
  const Json json = Json::parse(run_program("profile " + kTrace + " --device cpu --json -").out);
  EXPECT_EQ(json["peak"]["reserved_bytes"], 64) << "the only storage on the host";
  expect_refusal("profile " + kTrace + " --device cpu --alloc-conf max_split_size_mb:64",
                 "--alloc-conf has no effect on cpu: the host's memory is not cached");
}

TEST(Profile, AllocConfDecidesHowMemoryIsCached) {
  const Json json =
      Json::parse(run_program("profile " + kTrace + " --json - --alloc-conf expandable_segments:True").out);
  EXPECT_EQ(json["options"], Json::object()) << "a trace has no options of its own";
  EXPECT_EQ(json["phases"][0]["segment"]["current"], 0) << "expandable segments do not count";
  expect_refusal_with("profile " + kTrace + " --alloc-conf nonsense:1", {"nonsense"});
}

TEST(Profile, ARunCanBeKeptAsATrace) {
  const std::string trace = temporary("kept.trace");
  const Outcome run = run_program("profile " + kBase + " --optimizer none --json - --write-trace " + trace);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Outcome again = run_program("profile " + trace + " --json -");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json expected = Json::parse(run.out), got = Json::parse(again.out);
  for (const char* key : {"parameters", "buffers", "flops", "flops_all", "saved", "phases", "peak"})
    EXPECT_EQ(expected[key], got[key]) << key;
}

TEST(Profile, AModelCanBeKeptAsText) {
  const std::string text = temporary("kept.mp");
  const Outcome run = run_program("profile " + kBase + " --precision bf16 --json - --write-program " + text);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Outcome again = run_program("profile " + text + " --precision bf16 --json -");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json expected = Json::parse(run.out), got = Json::parse(again.out);
  for (const char* key :
       {"parameters", "buffers", "flops", "flops_all", "saved", "phases", "peak", "modules"})
    EXPECT_EQ(expected[key], got[key]) << key;
  expect_refusal("profile " + kTrace + " --write-program " + text, "--write-program: a trace has no program");
}

TEST(Profile, OptionsOfTheStepHaveNoEffectOnATrace) {
  expect_refusal("profile " + kTrace + " --steps 2",
                 "--steps has no effect on a trace, whose steps are fixed");
}

TEST(Profile, AnUnknownOperatorHasARow) {
  const Outcome outcome = run_program("profile tests/data/programs/custom_op.pt2 --optimizer none --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out)["unmodelled"];
  const auto row =
      std::find_if(rows.begin(), rows.end(), [](const Json& r) { return r["op"] == "demo::scaled_gelu"; });
  ASSERT_NE(row, rows.end()) << rows;
  EXPECT_EQ((*row)["calls"], 1);
  EXPECT_GT((*row)["share_of_output_bytes"], 0);
}

TEST(Profile, StrictlyAnUnknownOperatorIsAnError) {
  expect_refusal_with("profile tests/data/programs/custom_op.pt2 --optimizer none --strict",
                      {"demo::scaled_gelu is not known", "--strict"});
}

TEST(Profile, ModelsHaveNames) {
  const Outcome outcome = run_program("profile resnet18 --steps 1 --per-node --depth 1",
                                      "METAPROF_MODELS=nowhere:tests/data/models ");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("FITS h200: needs ")) << outcome.out;
  const Outcome missing = run_program("profile resnet19", "METAPROF_MODELS=a:b ");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err,
            "metaprof: resnet19: no such file, and no resnet19.pt2 here or in the folders of METAPROF_MODELS "
            "(a:b); did you mean 'resnet18'?\n");
  EXPECT_EQ(run_program("profile resnet81", "METAPROF_MODELS=tests/data/models ").err,
            "metaprof: resnet81: no such file, and no resnet81.pt2 here or in the folders of METAPROF_MODELS "
            "(tests/data/models); did you mean 'resnet18'?\n");
  // Without folders the built-in model of that name is meant.
  EXPECT_EQ(run_program("profile resnet18 --steps 1").exit_code, 0);
  EXPECT_EQ(run_program("profile resnet18.pt2 --steps 1", "METAPROF_MODELS=tests/data/models ").exit_code, 0);
}

TEST(Profile, BuiltInModelsAreKnownByTheNamesOfTheHub) {
  const Outcome plain = run_program("profile llama-3.2-1b --steps 1");
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(run_program("profile meta-llama/Llama-3.2-1B --steps 1").out, plain.out);
  EXPECT_EQ(run_program("profile meta-llama/Llama-3.2-1B-Instruct --steps 1").out,
            plain.out);  // the same sizes
  expect_refusal("profile meta-llama/Llama-3.2-2B",
                 "meta-llama/Llama-3.2-2B: no such file, and no meta-llama/Llama-3.2-2B.pt2 here or in the "
                 "folders of METAPROF_MODELS (not set); did you mean 'llama-3.2-1b'?");
}

TEST(Profile, AMissingPathIsNoBuiltInModel) {
  expect_refusal("profile ./gpt2", "./gpt2: no such file");
  expect_refusal("profile /nowhere/gpt2", "/nowhere/gpt2: no such file");
  expect_refusal("profile nowhere/exports/gpt2", "nowhere/exports/gpt2: no such file");
}

TEST(Profile, ModelsThatCannotBeReadAreRefused) {
  expect_refusal("profile nowhere/model.pt2", "nowhere/model.pt2: no such file");
  expect_refusal(
      "profile networking",
      "networking: no such file, and no networking.pt2 here or in the folders of METAPROF_MODELS (not "
      "set)");
  expect_refusal("profile tests/data", "tests/data: the folder has no config.json");
  expect_refusal_with("profile tests/data/configs/broken/hf_syntax.config.json",
                      {"hf_syntax.config.json", "JSON"});
  expect_refusal_with("profile tests/data/configs/broken/hf_unknown_type.config.json",
                      {"hf_unknown_type.config.json", "model_type", "warpdrive"});
  expect_refusal_with("profile tests/data/fixtures/truncated_half.pt2",
                      {"truncated_half.pt2", "zip", "export"});
  expect_refusal_with("profile tests/data/fixtures/aoti_only.pt2",
                      {"aoti_only.pt2", "AOTInductor", "export"});
  expect_refusal_with("profile tests/data/fixtures/no_models.pt2", {"no_models.pt2", "models"});
  expect_refusal_with("profile tests/data/fixtures/json_syntax.pt2", {"json_syntax.pt2", "JSON"});
}

TEST(Profile, ATraceThatCannotBeReadNamesItsLine) {
  const std::string file = temporary("bad.trace");
  std::ofstream(file) << "+ 1 8 input\n- 2\n";
  expect_refusal("profile " + file, file + ":2: storage 2 does not exist yet; the last one is 1");
}

TEST(Profile, WordsThatAreNoOptionsAreRefused) {
  const Outcome outcome = run_program("profile " + kBase + " --optimizer adem");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(outcome.err.starts_with("metaprof: --optimizer: 'adem' is not one of: none")) << outcome.err;
  const Outcome precision = run_program("profile " + kBase + " --optimizer none --precision fp8");
  EXPECT_EQ(precision.exit_code, 2);
  EXPECT_EQ(precision.err,
            "metaprof: --precision: 'fp8' is not one of: fp32, bf16, fp16, amp-bf16, amp-fp16\n");
  expect_refusal("profile " + kTrace + " --device h900",
                 "--device: there is no device 'h900'; `metaprof devices` lists those that are known, and "
                 "files FILE.json "
                 "describe others; did you mean 'h200'?");
  expect_refusal(
      "profile " + kTrace + " --memory 24XB",
      "'24XB' is not a size; expected a number and a unit, as 40GiB (B, KiB, MiB, GiB, TiB, kB, MB, GB, "
      "TB)");
}

TEST(Profile, ResultsThatCannotBeWrittenAreErrors) {
  const Outcome outcome = run_program("profile " + kTrace + " --json nowhere/x.json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "metaprof: nowhere/x.json: cannot be written (No such file or directory)\n");
  const Outcome full = run_program("profile " + kTrace + " --json /dev/full");
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_EQ(full.err, "metaprof: /dev/full: cannot be written (No space left on device)\n");
}

}  // namespace
}  // namespace metaprof
