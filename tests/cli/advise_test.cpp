#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kGpt2 = "tests/data/models/gpt2.pt2";

Json advice(const std::string& words, int exit_code) {
  const Outcome outcome = run_program("advise " + words + " --json -");
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  return Json::parse(outcome.out);
}

// The options of a row as words of the command line.
std::string words_of(const Json& changes) {
  std::string words;
  for (const auto& [name, value] : changes.items()) {
    std::string option = name;
    std::replace(option.begin(), option.end(), '_', '-');
    words += " --" + option + (value == "true" ? "" : " '" + value.get<std::string>() + "'");
  }
  return words;
}

// Where it does not fit, a profile has what would be reserved without the limit.
void expect_figures_of_profile(const std::string& words) {
  const Json json = Json::parse(run_program("advise " + words + " --json -").out);
  EXPECT_EQ(json["schema"], "metaprof.advise");
  EXPECT_FALSE(json["rows"].empty());
  for (const Json& row : json["rows"]) {
    const Json profile =
        Json::parse(run_program("profile " + words + " --json -" + words_of(row["changes"])).out);
    EXPECT_EQ(row["reserved"], profile["verdict"]["reserved_bytes"]) << words << row;
    EXPECT_EQ(row["fits"], profile["fits"]) << words << row;
    if (row["fits"].get<bool>()) {
      EXPECT_EQ(row["peak"], profile["peak"]["allocated_bytes"]) << words << row;
    }
    const Json& flops = profile["flops"];  // the backward has what it computes again
    EXPECT_EQ(row["flops"].get<int64_t>(), flops["forward"].get<int64_t>() +
                                               flops["backward"].get<int64_t>() +
                                               flops["optimizer"].get<int64_t>())
        << words << row;
  }
}

class AdviseOnCards : public testing::TestWithParam<const char*> {};
TEST_P(AdviseOnCards, EveryFigureIsThatOfAProfile) {
  const std::string model = GetParam();
  for (const char* card : {"t4", "rtx4090", "h100"})
    expect_figures_of_profile("tests/data/models/" + model + ".pt2 --steps 2 --device " + card);
}
INSTANTIATE_TEST_SUITE_P(Models, AdviseOnCards,
                         testing::Values("gpt2", "resnet18", "bert_base", "llama_3_2_1b", "convnext_tiny",
                                         "deit_small", "distilbert", "densenet121", "lstm_lm", "gpt2_lora",
                                         "autoencoder", "gemma3_270m"),
                         [](const auto& info) { return std::string(info.param); });

// What does not fit as it is fits with what is advised.
// `profile` looks for the fix alone, `advise` runs every switch before.
TEST(Advise, ProfileNamesTheSameCure) {
  const auto fix_in = [](const std::string& text) {
    const size_t begin = text.find("Cheapest fix: ");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  };
  const std::pair<const char*, const char*> kTooLarge[] = {
      {"llama_3_2_1b.pt2 --memory 23GiB", "--optimizer-impl fused →"},  // which costs nothing
      {"gpt2.pt2 --memory 4GiB", "--accumulate 4 --batch 1 →"},
      {"gpt2.pt2 --memory 3GiB", "--accumulate 4 --batch 1 --checkpoint 'model.transformer.h.*{>host}' →"},
      {"gpt2.pt2 --memory 2GiB",
       "--precision bf16 --accumulate 4 --batch 1 →"},  // other numbers, last of all
      {"llama_3_2_1b.pt2 --memory 12GiB", "--precision bf16 --optimizer-impl fused →"}};
  for (const auto& [words, part] : kTooLarge) {
    const std::string rest =
        "tests/data/models/" + std::string(words) + " --device rtx4090 --workspaces none";
    const std::string fix = fix_in(run_program("profile " + rest).out);
    EXPECT_EQ(fix, fix_in(run_program("advise " + rest).out)) << words;
    EXPECT_NE(fix.find(part), std::string::npos) << words << ": " << fix;
  }
}

TEST(Advise, TheBestCombinationFits) {
  const std::string words = kGpt2 + " --memory 4GiB --steps 2";
  EXPECT_EQ(run_program("profile " + words).exit_code, 1);
  const Json json = advice(words, 0);
  EXPECT_FALSE(json["base"]["fits"].get<bool>());
  EXPECT_TRUE(json["best"]["fits"].get<bool>());
  EXPECT_EQ(run_program("profile " + words + words_of(json["best"]["changes"])).exit_code, 0) << json["best"];
  const Outcome text = run_program("advise " + words);
  EXPECT_TRUE(text.out.starts_with("DOES NOT FIT h200: needs ")) << text.out;
  EXPECT_NE(text.out.find(". Cheapest fix: --"), std::string::npos) << text.out;
  const Outcome profile = run_program("profile " + words);
  EXPECT_EQ(profile.out.substr(0, profile.out.find('\n')), text.out.substr(0, text.out.find('\n')));
}

// bitsandbytes keeps two numbers of 8 bits for each element and a scale of fp32 for each 256 of both, or two of fp32
// where a parameter has less than 4096 elements, and two tables of 256 (bitsandbytes/optim/optimizer.py).
TEST(Advise, EightBitStatesAreThoseOfBitsandbytes) {
  const std::string trace = testing::TempDir() + "metaprof_8bit_" + std::to_string(getpid()) + ".trace";
  const Json profile = Json::parse(
      run_program("profile " + kGpt2 + " --optimizer adamw8bit --steps 2 --json - --write-trace " + trace)
          .out);
  std::istringstream lines(read_file(trace));
  std::remove(trace.c_str());
  int64_t expected = int64_t{2} * 256 * 4, parameters = 0;
  for (std::string word, name, tensor; lines >> word >> name >> tensor && word == "parameter"; ++parameters) {
    int64_t elements = 1;
    const size_t open = tensor.find('[');
    std::istringstream sizes(tensor.substr(open + 1, tensor.find(']') - open - 1));
    for (std::string size; std::getline(sizes, size, ',');) elements *= std::stoll(size);
    expected += elements < 4096 ? 8 * elements : 2 * elements + 8 * ((elements + 255) / 256);
    lines.ignore(10000, '\n');
  }
  EXPECT_EQ(parameters, 148) << "of gpt2";
  EXPECT_EQ(profile["peak"]["by_category"]["optimizer_state"], expected);
  EXPECT_GT(profile["flops_all"]["optimizer"].get<int64_t>(), 0);
}

TEST(Advise, EightBitStatesAndTheHostAreAmongTheSwitches) {
  std::string changes;
  const Json json = advice(kGpt2 + " --steps 2 --device rtx4090", 0);
  for (const Json& row : json["rows"]) changes += words_of(row["changes"]) + "\n";
  EXPECT_NE(changes.find("--optimizer 'adamw-8bit'\n"), std::string::npos) << changes;
  EXPECT_NE(changes.find("--checkpoint 'model.transformer.h.*{>host}'\n"), std::string::npos) << changes;
  const std::string text = run_program("advise " + kGpt2 + " --steps 2 --device rtx4090").out;
  EXPECT_NE(text.find("{>host}: what is saved for backward waits in the host's memory"), std::string::npos)
      << text;
}

TEST(Advise, ChannelsLastIsNotFor8Bit) {
  expect_refusal_with(
      "profile tests/data/models/resnet18.pt2 --steps 1 --optimizer adamw-8bit --channels-last",
      {"--optimizer adamw-8bit copies parameters that are not contiguous"});
}

TEST(Advise, NothingHelpsIsAFinding) {
  EXPECT_FALSE(advice(kGpt2 + " --memory 600MiB --steps 1", 1)["best"]["fits"].get<bool>());
}

TEST(Advise, ATraceHasNoSwitches) {
  expect_refusal("advise tests/data/traces/two_layers.trace",
                 "two_layers: a trace is a run that was: it has no switches");
}

// Adapters are another training: they are looked at only where no switch of this one suffices.
TEST(Advise, AdaptersAreTheLastResort) {
  const std::string words = "llama-3.2-1b --precision bf16 --device ";
  const Json large = advice(words + "h100", 0);
  EXPECT_EQ(large["rows"].dump().find("lora"), std::string::npos);
  const Json small = advice(words + "rtx3080 --memory 6GiB", 0);
  ASSERT_TRUE(small["best"]["fits"]);
  EXPECT_EQ(small["best"]["changes"]["lora"], "r=8");
  EXPECT_NE(run_program("advise " + words + "rtx3080 --memory 6GiB")
                .out.find("adapters are trained beside frozen weights"),
            std::string::npos);
  const std::string fix = words_of(small["best"]["changes"]);
  EXPECT_EQ(run_program("profile " + words + "rtx3080 --memory 6GiB" + fix).exit_code, 0) << fix;
}

}  // namespace
}  // namespace metaprof
