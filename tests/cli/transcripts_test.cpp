// What people met who tried everything, each told right.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kGpt2 = "tests/data/models/gpt2.pt2", kBase = "tests/data/fixtures/base.pt2",
                  kLlama = "tests/data/models/llama_3_2_1b.pt2";

Json json_of(const std::string& words) { return Json::parse(run_program(words + " --json -").out); }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What is allocated, idle and asked for when memory runs out is as it was at the request, so the sum tells why.
TEST(Transcripts, TheOutOfMemoryLineDoesNotContradictItself) {
  const Json json = json_of("profile " + kGpt2 + " --batch 26 --device rtx4090");
  const Json& failed = json["out_of_memory"];
  const int64_t allocated = failed["allocated"], reserved = failed["reserved"],
                requested = failed["requested"];
  EXPECT_LE(allocated, reserved);
  EXPECT_LE(reserved,
            json["verdict"]["memory_bytes"].get<int64_t>() - json["verdict"]["outside_bytes"].get<int64_t>());
  EXPECT_GT(reserved + requested,
            json["verdict"]["memory_bytes"].get<int64_t>() - json["verdict"]["outside_bytes"].get<int64_t>())
      << "what is asked for does not fit beside what is reserved";
  EXPECT_TRUE(holds(
      run_program("profile " + kGpt2 + " --batch 26 --device rtx4090").out,
      "while 19.6 GiB are allocated and 1.7 GiB lie in the allocator's cache in pieces that are too small"));
}

// 4 MiB beside the step are no room for a context: profile and fit say the same.
TEST(Transcripts, ProfileAndFitHaveOneVerdict) {
  const std::string words = kLlama + " --device rtx4090 --precision amp-fp16 --batch 1";
  EXPECT_EQ(run_program("profile " + words).exit_code, 1);
  EXPECT_EQ(run_program("fit " + words.substr(0, words.find(" --batch"))).exit_code, 1);
  const Json sweep = json_of("sweep " + words)["rows"][0];
  EXPECT_FALSE(sweep["fits"].get<bool>());
}

// A model that was exported in bf16 is not headed fp32, asked for or not.
TEST(Transcripts, ExportsInSixteenBitsSaySo) {
  const std::string file = testing::TempDir() + "metaprof_bf16_" + std::to_string(getpid()) + ".mp";
  run_program("profile " + kBase + " --write-program " + file);
  std::string text = read_file(file);
  for (size_t at = 0; (at = text.find("f32[", at)) != std::string::npos; at += 5) text.replace(at, 3, "bf16");
  std::ofstream(file) << text;
  for (const char* asked : {"", " --precision fp32"}) {
    const Outcome outcome = run_program("profile " + file + asked);
    EXPECT_TRUE(holds(outcome.out, "\nprecision bf16 as exported, optimizer adamw, steps 3\n"))
        << outcome.out;
    EXPECT_TRUE(
        holds(outcome.out, "Note: the export's parameters are bf16, and --precision fp32 leaves them so"));
  }
  std::remove(file.c_str());
}

// Which inputs were run stands in the text, in JSON and on the page.
TEST(Transcripts, InputsAreNamed) {
  const std::string page = testing::TempDir() + "metaprof_inputs_" + std::to_string(getpid()) + ".html";
  const Outcome outcome = run_program("profile " + kGpt2 + " --batch 2 --sequence 256 --html " + page);
  EXPECT_TRUE(holds(outcome.out, "\ninputs input_ids i64[2,256], labels i64[2,256]\n")) << outcome.out;
  EXPECT_TRUE(holds(read_file(page), "input_ids i64[2,256], labels i64[2,256]"));
  std::remove(page.c_str());
  const Json inputs = json_of("profile " + kGpt2 + " --batch 2 --sequence 256")["inputs"];
  EXPECT_EQ(inputs[0]["name"], "input_ids");
  EXPECT_EQ(inputs[0]["shape"], Json({2, 256}));
}

// gpt2 has a table of 1024 positions; the real step ends with an index error.
TEST(Transcripts, PositionsBeyondTheModelsTableAreRefused) {
  expect_refusal(
      "profile " + kGpt2 + " --sequence 4096",
      kGpt2 +
          ": model.transformer.wpe.weight has 1024 positions, and the inputs have 4096: the step would "
          "end with an index error");
}

// 2^60 bytes of input: the answer does not wait for 2^27 pieces of a reduction.
TEST(Transcripts, AnExbibyteDoesNotFitAndIsSaidAtOnce) {
  const Outcome outcome = run_program("profile tests/data/fixtures/size_1EiB.pt2", "timeout 60 ");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("DOES NOT FIT h200: needs more than 139.8 GiB + ")) << outcome.out;
}

// Llama 1B, batch 4: 16 inputs of checkpointed layers, f32[4,1024,2048], are alive when the forward ends.
TEST(Transcripts, CheckpointedInputsAreCounted) {
  const Json saved =
      json_of("profile " + kLlama + " --batch 4 --steps 1 --checkpoint 'model.model.layers.*'")["saved"];
  EXPECT_GE(saved["besides"]["bytes"].get<int64_t>(), int64_t{16} * 4 * 1024 * 2048 * 4) << saved["besides"];
}

// The page of a run that does not fit ends where memory ran out, and draws the limit.
TEST(Transcripts, ThePageOfARunThatDoesNotFitEndsThere) {
  const std::string page = testing::TempDir() + "metaprof_full_" + std::to_string(getpid()) + ".html";
  const Outcome outcome = run_program("profile " + kGpt2 + " --batch 26 --device rtx4090 --html " + page);
  const std::string html = read_file(page);
  std::remove(page.c_str());
  // The data is one line behind its element's tag.
  const size_t begin = html.find('>', html.find("id=\"data\"")) + 1;
  const Json data = Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
  EXPECT_EQ(data["verdict"].get<std::string>() + "\n", outcome.out.substr(0, outcome.out.find('\n') + 1));
  EXPECT_EQ(data["failed"]["op"], "aten::_log_softmax_backward_data");
  EXPECT_EQ(data["limit"].get<int64_t>(), 25251807232 - (int64_t{503} << 20))
      << "128 · 1536 KiB + 311 MiB outside";
  EXPECT_EQ(data["phases"].back()[0], "backward");
  EXPECT_EQ(data["phases"].back()[1], 2) << "steps count from 1";
  int64_t event = 0;
  for (size_t i = 0; i < data["moments"].size(); i += 4) event += data["moments"][i].get<int64_t>();
  EXPECT_LT(event, data["failed"]["event"].get<int64_t>());
}

// D1: a list that mixes what is usual with other values gives each row all columns.
TEST(Transcripts, FitTakesMixedLists) {
  for (const char* list : {" --checkpoint 'model.transformer.h.*',none", " --accumulate 1,4"}) {
    const Outcome outcome = run_program("fit " + kGpt2 + " --device rtx4090" + list);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::vector<size_t> ends;  // where "GiB" of the last column ends
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("rtx4090 ")) ends.push_back(line.size());
    ASSERT_EQ(ends.size(), 2u) << outcome.out;
    EXPECT_EQ(ends[0], ends[1]) << outcome.out;
  }
}

// D5: fit, sweep and advise say, too, on which inputs.
TEST(Transcripts, SearchesNameTheirInputs) {
  const std::string tail = "\ninputs input_ids i64[";
  EXPECT_TRUE(holds(run_program("fit " + kGpt2 + " --device rtx4090").out,
                    tail + "batch,512], labels i64[batch,512]\n"));
  EXPECT_TRUE(holds(run_program("fit " + kGpt2 + " --device rtx4090 --find sequence --batch 2").out,
                    tail + "2,sequence], labels i64[2,sequence]\n"));
  EXPECT_TRUE(holds(run_program("sweep " + kGpt2 + " --steps 1 --batch 1,2").out,
                    tail + "…,512], labels i64[…,512]\n"));
  EXPECT_TRUE(holds(run_program("advise " + kGpt2 + " --steps 1").out, tail + "4,512], labels i64[4,512]\n"));
  EXPECT_EQ(json_of("fit " + kGpt2 + " --device rtx4090")["rows"][0]["inputs"][0]["shape"], Json({25, 512}));
}

// D6: exports with Dim.AUTO take 2 and more.
TEST(Transcripts, ExportsWithDynamicSizesAreSearched) {
  const Outcome outcome =
      run_program("fit tests/data/programs/symbolic_exprs.pt2 --mode no-grad --steps 1 --optimizer none");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("FITS h200: batch 64 at most\n")) << outcome.out;
}

// D11: one note for all candidates of all rows.
TEST(Transcripts, FitSaysOnceWhoPlannedWorkspaces) {
  const Outcome outcome =
      run_program("fit tests/data/models/resnet18.pt2 --steps 1 --memory 4GiB --optimizer sgd,adamw",
                  "METAPROF_CUDNN=/nowhere ");
  EXPECT_EQ(outcome.err.find("metaprof: note: workspaces of "),
            outcome.err.rfind("metaprof: note: workspaces of "))
      << outcome.err;
}

// D12: why cuDNN was not asked.
TEST(Transcripts, ACudnnThatIsNotThereIsNamed) {
  const Outcome outcome =
      run_program("profile tests/data/models/resnet18.pt2 --steps 1", "METAPROF_CUDNN=/nonexistent ");
  EXPECT_TRUE(holds(outcome.out + outcome.err, "/nonexistent")) << outcome.out;
}

// D13: an archive of several programs is given with the name of one.
TEST(Transcripts, OneOfSeveralProgramsIsNamed) {
  const std::string file = "tests/data/programs/several_programs.pt2";
  expect_refusal_with("profile " + file, {"name one of train, infer, as " + file + ":NAME"});
  EXPECT_TRUE(
      holds(run_program("profile " + file + ":infer --mode inference").out, "\nseveral_programs:infer on "));
}

// D14: what --set leaves as it was is named, and what changes all inputs.
TEST(Transcripts, SettingOneOfTwoInputsSaysWhatWasLeft) {
  expect_refusal_with("profile " + kGpt2 + " --set input_ids=4x256",
                      {"--set left as they were: labels [4,512] (--batch and --sequence change all inputs)"});
}

// People count steps from 1.
TEST(Transcripts, TheFirstStepIsStepOne) {
  EXPECT_TRUE(holds(run_program("profile " + kBase + " --steps 1 --optimizer none").out, ", step 1"));
}

// D16: what a forward returns, as a cache of keys and values, is no temporary. x·w is returned, x·w·w is not, and its
// relu is: at the last product x, w, and both results of 4 MiB are alive.
TEST(Transcripts, ResultsOfInferenceAreNoTemporaries) {
  const std::string file = testing::TempDir() + "metaprof_results_" + std::to_string(getpid()) + ".mp";
  std::ofstream(file)
      << "metaprof program 1\n"
         "parameter w = %w: f32[1024,1024] grad\ninput x = %x: f32[1024,1024]\nscope m1 = \"\"\n"
         "%y: f32[1024,1024] = aten::mm(%x, %w) in m1\n"
         "%z: f32[1024,1024] = aten::mm(%y, %w) in m1\n"
         "%a: f32[1024,1024] = aten::relu(%z) in m1 drop %z\noutput user = %y\noutput user = %a\n";
  const Json peak = json_of("profile " + file + " --mode inference")["peak"]["by_category"];
  std::remove(file.c_str());
  EXPECT_EQ(peak["activation"], 4 << 20) << peak;
  EXPECT_EQ(peak["temporary"], 4 << 20) << peak;
}

// Inference has neither an optimizer nor training steps.
TEST(Transcripts, InferenceIsHeadedAsInference) {
  const Outcome profile = run_program("profile " + kBase + " --mode inference");
  EXPECT_TRUE(holds(profile.out, "\nprecision fp32, forwards 3, mode inference\n")) << profile.out;
  const Outcome fit = run_program("fit " + kBase + " --mode inference");
  EXPECT_TRUE(holds(fit.out, "\nbase: the largest batch of which a forward fits\n")) << fit.out;
  EXPECT_FALSE(holds(fit.out, "adamw")) << fit.out;
}

}  // namespace
}  // namespace metaprof
