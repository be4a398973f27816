// A pass that is written into the trace in place of being run: the trace is the one of running it, line by line.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "meta/platform/platform.h"
#include "meta/trace/text.h"
#include "program/pt2/pt2.h"
#include "step/options.h"
#include "step/step.h"
#include "step/training_step.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

// Every pass is run.
std::string text_of_running(const Program& program, const Platform& platform, const StepOptions& options) {
  TrainingStep training(program, platform, options);
  for (int step = 0; step < options.steps; ++step) {
    for (int micro = 0; micro < options.accumulate; ++micro) {
      training.forward(step, options.accumulate > 1 ? micro : -1);
      training.backward(step, options.accumulate > 1 ? micro : -1);
    }
    if (!training.has_optimizer()) continue;
    training.update(step);
    training.zero_grad(step);
  }
  return to_text(training.finish());
}

struct Choice {
  const char* name;
  std::vector<std::pair<const char*, const char*>> options;
};

const Choice kChoices[] = {
    {"plain", {}},
    {"SGD", {{"optimizer", "sgd"}, {"steps", "4"}}},
    {"autocast", {{"precision", "amp-bf16"}}},
    {"scaled gradients", {{"precision", "amp-fp16"}, {"steps", "4"}}},
    {"in bf16, clipped", {{"precision", "bf16"}, {"clip_norm", "1"}}},
    {"checkpoints", {{"checkpoint", "*.*"}}},
    {"gradients are kept", {{"zero_grad_to_none", "false"}}},
    {"no optimizer", {{"optimizer", "none"}}},
    {"two micro-batches", {{"accumulate", "2"}}},
    {"saved on the host", {{"hooks", "offload"}}},
    {"gradient of an input", {{"grad", "INPUT"}}},
    {"gradient penalty", {{"grad", "INPUT"}, {"create_graph", "true"}, {"steps", "5"}}},
    {"Hessian's product", {{"grad", "INPUT"}, {"hvp", "true"}, {"steps", "5"}}},
};

// "INPUT" is the first floating one.
std::string value_for(const Program& program, std::string_view value) {
  if (value != "INPUT") return std::string(value);
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::user || input.value == kNoValue) continue;
    const auto& tensor = program.graph.values[size_t(input.value)].tensor;
    if (tensor && is_floating(tensor->dtype)) return input.name;
  }
  return "there is none";
}

RunOptions options_of(const Choice& choice, const Program& program) {
  RunOptions options;
  for (const auto& [name, value] : choice.options)
    set_from_text(options, run_option(name), value_for(program, value));
  return options;
}

std::set<fs::path> models() {
  std::set<fs::path> files;
  for (const fs::path& folder : {evidence_folder().models, evidence_folder().programs})
    if (fs::is_directory(folder))
      for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".pt2" && entry.file_size() < 200'000) files.insert(entry.path());
  return files;
}

// The first line in which two texts differ.
std::string difference(const std::string& one, const std::string& other) {
  const auto [at, there] = std::ranges::mismatch(one, other);
  if (at == one.end() && there == other.end()) return "";
  const auto line = [&](const std::string& text, size_t position) {
    const size_t begin = text.rfind('\n', position == 0 ? 0 : position - 1) + 1;
    return text.substr(begin, text.find('\n', position) - begin);
  };
  const auto position = size_t(at - one.begin());
  return "written: " + line(one, position) + "\nrun:     " + line(other, position);
}

TEST(RepeatedPass, IsWrittenAsItWouldRun) {
  const Platform platform = platform_named("h200");
  for (const fs::path& file : models()) {
    Program program;
    try {
      program = read_pt2(file.string());
    } catch (const Error&) {
      continue;
    }
    for (const Choice& choice : kChoices) {
      const RunOptions options = options_of(choice, program);
      std::string expected;
      try {
        expected = text_of_running(program, platform, options.step);
      } catch (const Error&) {
        continue;  // has no loss, or no such modules
      }
      EXPECT_EQ(difference(to_text(run_steps(program, platform, options.step)), expected), "")
          << file << ", " << choice.name;
    }
  }
}

// The loss of a pass that was run has a history; one that was written has none.
TEST(RepeatedPass, IsNotRun) {
  const Platform platform = platform_named("h200");
  const Program program = read_pt2("tests/data/models/gpt2.pt2");
  StepOptions options;
  TrainingStep training(program, platform, options);
  training.repeat_passes();
  for (const bool is_run : {true, false, false}) {
    training.forward(0, -1);
    EXPECT_EQ(bool(training.loss()->grad_fn), is_run);
    training.backward(0, -1);
    training.update(0);
    training.zero_grad(0);
  }
}

}  // namespace
}  // namespace metaprof
