// Backward passes of recorded training steps of the real framework: the same nodes, in the same order, and
// between them the same allocations and frees of the same blocks, those of kernels' temporaries included.

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/formats/gzip_lines.h"
#include "meta/platform/platform.h"
#include "program/pt2/pt2.h"
#include "step/step.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

// One line of what happened: "MmBackward0", "+ 4096 #17", "- #17". Blocks are numbered in the order of birth.
using Happenings = std::vector<std::string>;

class Blocks {
 public:
  void born(std::string_view name, int64_t bytes) {
    numbers_[std::string(name)] = ++count_;
    text_ = "+ " + std::to_string(bytes) + " #" + std::to_string(count_);
  }
  void gone(std::string_view name) { text_ = "- #" + std::to_string(numbers_.at(std::string(name))); }
  const std::string& text() const { return text_; }

 private:
  std::unordered_map<std::string, int> numbers_;
  int count_ = 0;
  std::string text_;
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

// "torch::autograd::AccumulateGrad": nodes that no table of derivatives made.
std::string_view without_namespace(std::string_view name) {
  constexpr std::string_view kNamespace = "torch::autograd::";
  return name.starts_with(kNamespace) ? name.substr(kNamespace.size()) : name;
}

Happenings recorded_backward(const std::string& path) {
  Happenings happened;
  Blocks blocks;
  bool backward = false;
  std::string_view line;
  for (GzipLines lines(path, "a recording"); lines.next(line);) {
    if (line.starts_with("# phase ")) backward = line.starts_with("# phase backward");
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() < 2) continue;
    if (words[0] == "+") {
      blocks.born(words[1], std::stoll(std::string(words[2])));
    } else if (words[0] == "-") {
      blocks.gone(words[1]);
    } else if (words[0] == ">" && words[1] == "evaluate") {
      if (backward) happened.emplace_back(without_namespace(words[2]));
      continue;
    } else {
      continue;
    }
    if (backward) happened.push_back(blocks.text());
  }
  return happened;
}

bool is_node(std::string_view happening) { return happening[0] != '+' && happening[0] != '-'; }

Happenings our_backward(const Trace& trace) {
  Happenings happened;
  Blocks blocks;
  std::vector<Event::Kind> running;
  bool backward = false;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) backward = Phase{event.detail} == Phase::backward;
    if (event.kind == Event::Kind::call || event.kind == Event::Kind::node) running.push_back(event.kind);
    if (event.kind == Event::Kind::node && backward)
      happened.emplace_back(trace.text(trace.nodes[event.id].name));
    if (event.kind == Event::Kind::end) {
      // A recording has no line for a node in which no memory came or went.
      if (running.back() == Event::Kind::node && is_node(happened.back())) happened.pop_back();
      running.pop_back();
    }
    if (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free) continue;
    if (!trace.storages[event.id].device.is_cuda()) continue;
    if (event.kind == Event::Kind::alloc) {
      blocks.born(std::to_string(event.id), trace.bytes(event.id).count);
    } else {
      blocks.gone(std::to_string(event.id));
    }
    if (backward) happened.push_back(blocks.text());
  }
  return happened;
}

// Frees without a request between them may come in another order in another run of the framework.
void sort_frees(Happenings& happened) {
  auto is_free = [](const std::string& text) { return text[0] == '-'; };
  for (auto begin = happened.begin(); begin != happened.end();) {
    begin = std::find_if(begin, happened.end(), is_free);
    const auto end = std::find_if_not(begin, happened.end(), is_free);
    std::sort(begin, end);
    begin = end;
  }
}

// What the head of a recording says about the run: the model's file and the step.
struct RecordedStep {
  std::string model, device;
  StepOptions options;
};

RecordedStep read_head(const fs::path& path) {
  std::ifstream file(path);
  const nlohmann::json config = nlohmann::json::parse(file)["config"];
  RecordedStep step{.model = config["model"], .device = config["device"], .options = {}};
  for (const auto& [key, letter] : {std::pair{"batch", "b"}, std::pair{"seq", "s"}, std::pair{"image", "i"}})
    if (!config[key].is_null()) step.model += "." + (letter + std::to_string(config[key].get<int>()));
  step.model += ".pt2";
  StepOptions& options = step.options;
  options.precision = precision_named(config["precision"].get<std::string>());
  options.optimizer = config["optimizer"];
  options.optimizer_impl = optimizer_impl_named(config["optimizer_impl"].get<std::string>());
  options.steps = config["steps"];
  options.accumulate = config["accumulate"];
  if (!config["clip_norm"].is_null()) options.clip_norm = config["clip_norm"].get<double>();
  if (!config["clip_value"].is_null()) options.clip_value = config["clip_value"].get<double>();
  options.zero_grad_to_none = config["zero_grad_to_none"];
  options.channels_last = config["channels_last"];
  if (!config["checkpoint"].is_null()) options.checkpoint = config["checkpoint"];
  options.checkpoint_reentrant = config["checkpoint_reentrant"];
  options.mode = mode_named(config["mode"].get<std::string>());
  for (const auto& [name, value] : config["env"].items()) options.environment[name] = value;
  return step;
}

// The first difference, in words; empty if there is none. `recording`: the path without ".json".
std::string difference(const std::string& recording, const fs::path& models) {
  const RecordedStep step = read_head(recording + ".json");
  Happenings recorded = recorded_backward(recording + ".log.gz");
  Happenings ours = our_backward(
      run_steps(read_pt2((models / step.model).string()), platform_named(step.device), step.options));
  sort_frees(recorded);
  sort_frees(ours);
  const auto [ours_at, recorded_at] =
      std::mismatch(ours.begin(), ours.end(), recorded.begin(), recorded.end());
  if (ours_at == ours.end() && recorded_at == recorded.end()) return {};
  auto text = [](const Happenings& all, Happenings::iterator at) {
    return at == all.end() ? "the end" : *at;
  };
  return "number " + std::to_string(recorded_at - recorded.begin()) + " of " +
         std::to_string(recorded.size()) + ": recorded '" + text(recorded, recorded_at) + "', ours '" +
         text(ours, ours_at) + "'";
}

TEST(RecordedBackward, OfSmallModels) {
  // tied-lm: the embedding's weight is the head's, too.
  for (const char* name : {"tied-lm", "lstm-lm", "resnet18", "gpt2"})
    EXPECT_EQ(difference(std::string("tests/data/recordings/") + name, "tests/data/models"), "") << name;
}

// Recordings whose backward differs, because what comes before it does: the names with a shell's wildcards,
// and why. One that no longer differs is a failure.
struct Exception {
  const char *names, *why;
};
const Exception kDiffer[] = {
    {"t5-small.amp-*", "the model's Python compares dtypes and casts; the program does not show it"},
    {"swin-t.ckpt-*", "locals of a helper without a frame of its own, in a region that is computed again"},
    {"tiny-llama.asgd.for-loop.*", "the number of ASGD's temporaries"},
};

const char* why_it_differs(const std::string& name) {
  for (const Exception& exception : kDiffer)
    if (fnmatch(exception.names, name.c_str(), 0) == 0) return exception.why;
  return nullptr;
}

bool runs_out_of_memory(const fs::path& head) {
  std::ifstream file(head);
  return !nlohmann::json::parse(file)["config"]["memory_mib"].is_null();
}

// All of them, or the part that is in the checkout.
TEST(RecordedBackward, OfAllRecordings) {
  const EvidenceFolder evidence = evidence_folder();
  int equal = 0;
  for (const auto& entry : fs::directory_iterator(evidence.steps)) {
    if (entry.path().extension() != ".json" || runs_out_of_memory(entry.path())) continue;
    const std::string name = entry.path().stem().string();
    const std::string found = difference((evidence.steps / name).string(), evidence.models);
    if (const char* why = why_it_differs(name)) {
      EXPECT_NE(found, "") << name << " is equal by now: take it out of the exceptions (" << why << ")";
    } else {
      EXPECT_EQ(found, "") << name;
    }
    equal += found.empty();
  }
  EXPECT_GT(equal, 0);
}

}  // namespace
}  // namespace metaprof
