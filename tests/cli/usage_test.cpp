#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/read_file.h"

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

// A screen at most, and every option is named.
TEST(Usage, TheShortHelpNamesWhatTheLongOneExplains) {
  for (const std::string command : {"profile", "run", "rent", "fit", "schema"}) {
    const Outcome outcome = run_program(command + " -h");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_LE(std::ranges::count(outcome.out, '\n'), 30) << outcome.out;
    EXPECT_NE(outcome.out.find("\nUsage: metaprof " + command), std::string::npos) << outcome.out;
    std::istringstream lines(run_program(command + " --help").out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  --")) continue;
      const std::string option = line.substr(2, line.find_first_of(" ,", 2) - 2);
      EXPECT_NE(outcome.out.find(option), std::string::npos) << command << ' ' << option;
    }
  }
}

TEST(Usage, TheListOfCommandsHasALineForEach) {
  const std::string out = run_program("--help").out;
  EXPECT_NE(out.find("  profile                   What training steps of a model cost.\n"), std::string::npos)
      << out;
}

TEST(Usage, NoCommandAndUnknownCommandsNameThose) {
  expect_refusal(
      "",
      "which command? There are profile, ops, allocator, check, rent, fit, diff, together, sweep, "
      "plan-input, "
      "run, explain, selftest, cudagraphs, graph, advise, plan, devices, frameworks, schema, inspect, "
      "models, replay, "
      "measure, completion, man; "
      "metaprof --help "
      "shows examples");
  expect_refusal("frobnicate",
                 "there is no command 'frobnicate'; there are profile, ops, allocator, check, rent, fit, "
                 "diff, together, "
                 "sweep, plan-input, run, explain, selftest, cudagraphs, graph, advise, plan, devices, "
                 "frameworks, schema, inspect, "
                 "models, replay, measure, completion, man");
  expect_refusal(
      "profil",
      "there is no command 'profil'; there are profile, ops, allocator, check, rent, fit, diff, together, "
      "sweep, "
      "plan-input, run, explain, selftest, cudagraphs, graph, advise, plan, devices, frameworks, schema, "
      "inspect, models, "
      "replay, measure, completion, man; did you "
      "mean 'profile'?");
}

TEST(Usage, TheVersionAndHelpAsUsual) {
  // A tree without git has no commit.
  EXPECT_TRUE(std::regex_match(run_program("--version").out,
                               std::regex("metaprof \\d+\\.\\d+\\.\\d+( \\([0-9a-f]{10}\\))?\n")));
  EXPECT_EQ(run_program("help fit").out, run_program("fit --help").out);
  EXPECT_EQ(run_program("help").out, run_program("--help").out);
  EXPECT_EQ(run_program("version").out, run_program("--version").out);
}

TEST(Usage, ColoursAreForTerminalsUnlessAsked) {
  const std::string words = "profile resnet18 --device t4 --workspaces none";
  EXPECT_EQ(run_program(words).out.find('\x1b'), std::string::npos);
  EXPECT_NE(run_program(words + " --color always").out.find('\x1b'), std::string::npos);
  EXPECT_EQ(run_program(words + " --color never").out, run_program(words).out);
  EXPECT_EQ(run_program(words, "FORCE_COLOR=1 ").out, run_program(words + " --color always").out);
  EXPECT_EQ(run_program(words, "FORCE_COLOR=1 NO_COLOR=1 ").out, run_program(words).out);
  expect_refusal(words + " --color red",
                 "--color: red not in {auto,always,never} ('metaprof profile --help' shows the options)");
}

// The shells themselves read what is written for them.
TEST(Usage, CompletionForShellsAndAManualPage) {
  const std::string file = testing::TempDir() + "metaprof_completion_" + std::to_string(getpid());
  std::ofstream(file)
      << run_program("completion bash").out
      << "COMP_WORDS=(metaprof pro) COMP_CWORD=1; _metaprof; echo ${COMPREPLY[@]}\n"
         "COMP_WORDS=(metaprof fit --chan) COMP_CWORD=2; _metaprof; echo ${COMPREPLY[@]}\n"
         "COMP_WORDS=(metaprof fit resnet15) COMP_CWORD=2; _metaprof; echo ${COMPREPLY[@]}\n"
         "COMP_WORDS=(metaprof fit gpt2 --device rtx409) COMP_CWORD=4; _metaprof; echo ${COMPREPLY[@]}\n"
         "COMP_WORDS=(metaprof fit gpt2 --device t4,rtx409) COMP_CWORD=4; _metaprof; echo ${COMPREPLY[@]}\n"
         "COMP_WORDS=(metaprof fit gpt2 --precision fp32,amp-b) COMP_CWORD=4; _metaprof; echo "
         "${COMPREPLY[@]}\n"
         "COMP_WORDS=(metaprof profile gpt2 --optimizer rmsp) COMP_CWORD=4; _metaprof; echo "
         "${COMPREPLY[@]}\n";
  ASSERT_EQ(std::system(("bash " + file + " > " + file + ".out 2>&1").c_str()), 0);
  EXPECT_EQ(
      read_file(file + ".out"),
      "profile\n--channels-last\nresnet152\nrtx4090\nt4,rtx4090\nfp32,amp-bf16\nrmsprop rmsprop-momentum\n");
  std::remove(file.c_str());
  std::remove((file + ".out").c_str());
  EXPECT_NE(run_program("completion fish").out.find("__fish_seen_subcommand_from fit' -l device -r"),
            std::string::npos);
  EXPECT_TRUE(run_program("completion zsh").out.starts_with("autoload -U +X bashcompinit"));
  expect_refusal("completion tcsh", "completion: unknown shell 'tcsh'; expected bash, zsh or fish");
  const Outcome manual = run_program("man");
  EXPECT_TRUE(manual.out.starts_with(".TH METAPROF 1 \"")) << manual.out.substr(0, 60);
  EXPECT_NE(manual.out.find("type,\\:parameters,\\:saved"), std::string::npos) << "long lists can be broken";
  EXPECT_NE(manual.out.find("\n.SS fit\n"), std::string::npos);
}

// What is not given is taken from the environment; the command line is stronger.
TEST(Usage, OptionsHaveDefaultsInTheEnvironment) {
  const std::string words = "profile tests/data/fixtures/base.pt2 --steps 1 --depth 0";
  EXPECT_TRUE(run_program(words, "METAPROF_DEVICE=t4 ").out.starts_with("FITS t4: "));
  EXPECT_TRUE(run_program(words + " --device l4", "METAPROF_DEVICE=t4 ").out.starts_with("FITS l4: "));
  const Outcome wrong = run_program(words, "METAPROF_PRECISION=fp33 ");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--precision: 'fp33' is not one of"), std::string::npos) << wrong.err;
}

// A file of defaults: weaker than the environment, which is weaker than the command line.
class FileOfDefaults : public testing::Test {
 protected:
  ~FileOfDefaults() override { std::remove(file_.c_str()); }
  // The first words of the report, or the error.
  std::string report(const std::string& text, const std::string& words = "",
                     const std::string& environment = "") {
    std::ofstream(file_) << text;
    const Outcome outcome = run_program("profile tests/data/fixtures/base.pt2 --depth 0 " + words,
                                        environment + "METAPROF_CONFIG=" + file_ + " ");
    return outcome.exit_code == 2 ? outcome.err : outcome.out;
  }
  const std::string file_ = testing::TempDir() + "metaprof_defaults_" + std::to_string(getpid()) + ".toml";
};

TEST_F(FileOfDefaults, GivesWhatIsNotGiven) {
  const std::string text = "# mine\ndevice = \"t4\"\nsteps = 1\nalloc_conf = \"expandable_segments:True\"\n";
  EXPECT_TRUE(report(text).starts_with("FITS t4: "));
  EXPECT_NE(report(text).find("steps 1, alloc_conf expandable_segments:True"), std::string::npos)
      << report(text);
  EXPECT_TRUE(report(text, "", "METAPROF_DEVICE=l4 ").starts_with("FITS l4: "));
  EXPECT_TRUE(report(text, "--device a100", "METAPROF_DEVICE=l4 ").starts_with("FITS a100: "));
}

TEST_F(FileOfDefaults, HasSectionsForCommands) {
  EXPECT_TRUE(report("device = \"t4\"\n[fit]\ndevice = \"l4\"\n").starts_with("FITS t4: "));
  EXPECT_TRUE(report("[profile]\ndevice = \"l4\"\n").starts_with("FITS l4: "));
}

TEST_F(FileOfDefaults, WhatIsWrongInItIsNamed) {
  EXPECT_EQ(report("devcie = \"t4\"\n"),
            "metaprof: " + file_ +
                ": 'devcie' is not an option with a default; metaprof profile --help lists them; "
                "did you mean 'device'?\n");
  EXPECT_EQ(report("[fti]\ndevice = \"t4\"\n"), "metaprof: " + file_ + ": there is no command [fti]\n");
  const Outcome missing = run_program("devices", "METAPROF_CONFIG=/nowhere.toml ");
  EXPECT_EQ(missing.err, "metaprof: /nowhere.toml: no such file\n");
}

// A default is not given: a trace, whose steps were run, takes no options of the step.
TEST_F(FileOfDefaults, DefaultsAreNotGiven) {
  std::ofstream(file_) << "precision = \"amp-bf16\"\n";
  EXPECT_EQ(
      run_program("profile tests/data/traces/two_layers.trace", "METAPROF_CONFIG=" + file_ + " ").exit_code,
      0);
}

// A model that comes through a pipe, in each of its forms; reports, too.
TEST(Usage, AHyphenIsTheStandardInput) {
  const auto piped = [](const std::string& file, const std::string& words) {
    const std::string out = testing::TempDir() + "metaprof_piped_" + std::to_string(getpid());
    const int status =
        std::system(("cat " + file + " | " METAPROF_BINARY " " + words + " >" + out + " 2>&1").c_str());
    std::string text = std::to_string(WEXITSTATUS(status)) + " " + read_file(out);
    std::remove(out.c_str());
    return text;
  };
  const std::string base = "tests/data/fixtures/base.pt2", text = testing::TempDir() + "metaprof_piped.mp";
  run_program("profile " + base + " --write-program " + text);
  const std::string figures = piped("/dev/null", "profile " + base + " --json - | jq -c .peak");
  for (const std::string& file : {base, text})
    EXPECT_EQ(piped(file, "profile - --json - | jq -c .peak"), figures) << file;
  std::remove(text.c_str());
  EXPECT_TRUE(piped("tests/data/traces/two_layers.trace", "profile -").starts_with("0 FITS h200"));
  EXPECT_TRUE(piped("program/builtin/configs/gpt2.json", "profile - --steps 1").starts_with("0 FITS h200"));
  EXPECT_TRUE(piped("tests/data/fixtures/truncated_half.pt2", "profile -").starts_with("2 metaprof: -: "));
  EXPECT_EQ(piped("/dev/null", "profile -"),
            "2 metaprof: -: the standard input is empty, expected a model\n");
  const std::string report = testing::TempDir() + "metaprof_piped.json";
  run_program("profile " + base + " --json " + report);
  EXPECT_EQ(piped(report, "diff - " + report), "0 no figure differs\n");
  std::remove(report.c_str());
}

TEST(Usage, JsonFollowsTheSchemas) {
  const std::string base = testing::TempDir() + "metaprof_schema_" + std::to_string(getpid()) + "_";
  const std::string model = "tests/data/fixtures/base.pt2 --steps 1";
  const auto write = [&](const std::string& words, const std::string& name) {
    EXPECT_NE(run_program(words + " --json " + base + name).exit_code, 2) << words;
  };
  write("profile " + model, "a");
  write("profile " + model + " --optimizer sgd", "b");
  write("fit " + model + " --device t4,l4", "fit");
  write("sweep " + model + " --optimizer sgd,rprop --optimizer-impl default,fused", "sweep");
  write("advise " + model + " --memory 700MiB", "advise");
  write("graph " + model, "graph");
  write("devices", "devices");
  write("frameworks", "frameworks");
  write("inspect tests/data/weights/mixed.safetensors", "inspect");
  write("diff " + base + "a " + base + "b", "diff");
  write("check tests/data/fixtures/base.pt2 --baseline " + base + "b", "check");
  write("plan " + model + " --budget 1GiB", "plan");
  write("cudagraphs " + model, "cudagraphs");
  write("ops softmax", "ops");
  write("ops --coverage tests/data/fixtures/base.pt2 tests/data/fixtures/unknown_op.pt2", "ops_coverage");
  write("ops --replay tests/data/recordings/ops_small.log.gz", "ops_replay");
  write("allocator --replay tests/data/recordings/gpt2.log.gz", "allocator_replay");
  for (const std::string format : {"rotor", "checkmate", "sac", "knapsack", "json"})
    write(fmt::format("plan-input {} --format {}", model, format), "plan_input_" + format);
  for (const char* name : {"fit",
                           "sweep",
                           "advise",
                           "graph",
                           "devices",
                           "diff",
                           "check",
                           "plan",
                           "cudagraphs",
                           "frameworks",
                           "inspect",
                           "ops",
                           "ops_coverage",
                           "ops_replay",
                           "allocator_replay",
                           "plan_input_rotor",
                           "plan_input_checkmate",
                           "plan_input_sac",
                           "plan_input_knapsack",
                           "plan_input_json"}) {
    const int status = std::system((std::string(METAPROF_PYTHON " tests/validate_json.py reports/schema/") +
                                    name + ".schema.json " + base + name)
                                       .c_str());
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
    EXPECT_EQ(WEXITSTATUS(status), 0) << name;
  }
}

// Tables take no more than --width; a file's take what they need.
TEST(Usage, TablesFitAWidth) {
  const auto longest_row = [](const std::string& text, const std::string& head) {
    std::istringstream lines(text.substr(text.find("\n" + head) + 1));
    size_t longest = 0;
    for (std::string line; std::getline(lines, line) && !line.empty();) {
      if (line.starts_with("too narrow for: ")) continue;
      size_t letters = 0;
      for (const char c : line) letters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      longest = std::max(longest, letters);
    }
    return longest;
  };
  const std::string words = "profile tests/data/models/gpt2.pt2 --steps 1 --depth 2";
  EXPECT_GT(longest_row(run_program(words).out, "module "), 100u);
  const std::string narrow = run_program(words + " --width 80").out;
  EXPECT_LE(longest_row(narrow, "module "), 80u) << narrow;
  EXPECT_NE(narrow.find("\ntoo narrow for: "), std::string::npos) << narrow;
  EXPECT_EQ(run_program(words, "METAPROF_WIDTH=80 ").out, narrow);
  EXPECT_LE(longest_row(run_program("devices --width 60").out, "device "), 60u);
}

TEST(Usage, DevicesAreListedAndFound) {
  const Outcome outcome = run_program("devices");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("\nrtx4090 "), std::string::npos) << outcome.out;
  const std::string words = "profile tests/data/fixtures/base.pt2 --steps 1 --depth 0 --device ";
  EXPECT_EQ(run_program(words + "'RTX 4090'").out, run_program(words + "rtx4090").out);
  EXPECT_EQ(run_program(words + "4090").out, run_program(words + "rtx4090").out);
  EXPECT_EQ(run_program(words + "A100-80GB").out, run_program(words + "a100").out);
  EXPECT_EQ(run_program(words + "'rtx 4080'").out, run_program(words + "rtx4080").out);  // not the SUPER
  expect_refusal_with(words + "nvidia", {"there is no device 'nvidia'"});
  EXPECT_EQ(run_program(words + "A100-40G").exit_code, 0);
  expect_refusal_with(words + "rtx4095", {"there is no device 'rtx4095'", "did you mean 'rtx4090'?"});
  for (const char* card : {"rtx3090", "a10g", "l4", "v100", "a6000", "rtx5090", "b200"})
    EXPECT_NE(outcome.out.find("\n" + std::string(card) + " "), std::string::npos) << card;
  // All have their figures, and the cards are listed by memory.
  const auto devices = nlohmann::json::parse(run_program("devices --json -").out)["devices"];
  EXPECT_GE(devices.size(), 40u);
  int64_t more = INT64_MAX;
  for (const auto& device : devices) {
    if (device["name"] == "cpu") continue;
    EXPECT_LE(device["memory_bytes"].get<int64_t>(), more) << device;
    more = device["memory_bytes"];
    EXPECT_GT(device["multiprocessors"].get<int>(), 0) << device;
    EXPECT_GT(device["bytes_per_second"].get<double>(), 0) << device;
  }
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
      "model.safetensors: has weights and no program: metaprof inspect shows them; export the model with "
      "torch.export.save and give the .pt2, or give its config.json");
}

TEST(Usage, SchemasArePrintedByName) {
  const std::string names = run_program("schema").out;
  for (const auto& entry : std::filesystem::directory_iterator("reports/schema")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".schema.json")) continue;
    const std::string name = file.substr(0, file.find('.'));
    EXPECT_NE(("\n" + names).find("\n" + name + "\n"), std::string::npos) << name;
    EXPECT_EQ(run_program("schema " + name).out, read_file(entry.path().string())) << name;
    EXPECT_EQ(run_program("schema metaprof." + name).out, read_file(entry.path().string())) << name;
  }
  expect_refusal(
      "schema profil",
      "schema: there is no schema 'profil'; `metaprof schema` lists them; did you mean 'profile'?");
}

TEST(Usage, UnknownOptionsAreNamed) {
  expect_refusal(
      "fit x.pt2 --devcie t4",
      "there is no option '--devcie'; did you mean '--device'? ('metaprof fit --help' shows the options)");
  expect_refusal("profile x.pt2 --hues",
                 "there is no option '--hues' ('metaprof profile --help' shows the options)");
  expect_refusal("--hues profile",
                 "the command comes before '--hues'; there are profile, ops, allocator, check, rent, fit, "
                 "diff, together, "
                 "sweep, plan-input, run, explain, selftest, cudagraphs, graph, advise, plan, devices, "
                 "frameworks, schema, inspect, "
                 "models, replay, measure, completion, man");
}

TEST(Usage, AValueThatIsMissingIsNamed) {
  expect_refusal("profile gpt2 --json",
                 "--json needs a value: FILE ('metaprof profile --help' shows the options)");
  expect_refusal("profile gpt2 --batch",
                 "--batch needs a value: N ('metaprof profile --help' shows the options)");
}

TEST(Usage, AReportIsNoModel) {
  const std::string file = testing::TempDir() + "usage_report.json";
  ASSERT_EQ(run_program("devices --json " + file).exit_code, 0);
  expect_refusal("fit " + file, file + ": is a report (metaprof.devices); give the model that it is of");
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
