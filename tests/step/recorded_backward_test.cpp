// Backward passes of recorded training steps of the real framework: the same nodes, in the same order, and
// between them the same allocations and frees of the same blocks, those of kernels' temporaries included.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <unordered_map>

#include "evidence/gzip_lines.h"
#include "frontend/pt2.h"
#include "meta/step/step.h"

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

Happenings recorded_backward(const std::string& path) {
  Happenings happened;
  Blocks blocks;
  bool backward = false;
  std::string_view line;
  for (GzipLines lines(path); lines.next(line);) {
    if (line.starts_with("# phase ")) backward = line.starts_with("# phase backward");
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() < 2) continue;
    if (words[0] == "+") {
      blocks.born(words[1], std::stoll(std::string(words[2])));
    } else if (words[0] == "-") {
      blocks.gone(words[1]);
    } else if (words[0] == ">" && words[1] == "evaluate") {
      if (backward) happened.emplace_back(words[2]);
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
      blocks.born(std::to_string(event.id), event.value);
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

void expect_recorded_backward(const std::string& recording, const std::string& model) {
  SCOPED_TRACE(recording);
  Happenings recorded = recorded_backward(recording);
  Happenings ours = our_backward(run_steps(read_pt2(model), *find_device("h200"), {}));
  ASSERT_GT(recorded.size(), 20U);
  sort_frees(recorded);
  sort_frees(ours);
  const auto [ours_at, recorded_at] =
      std::mismatch(ours.begin(), ours.end(), recorded.begin(), recorded.end());
  if (ours_at == ours.end() && recorded_at == recorded.end()) return;
  auto text = [](const Happenings& all, Happenings::iterator at) {
    return at == all.end() ? "the end" : *at;
  };
  ADD_FAILURE() << "number " << recorded_at - recorded.begin() << " of " << recorded.size() << ": recorded '"
                << text(recorded, recorded_at) << "', ours '" << text(ours, ours_at) << "'";
}

struct Step {
  const char *recording, *model;
};

TEST(RecordedBackward, OfSmallModels) {
  for (const Step& step : {Step{"tied-lm", "tied_lm"},  // the embedding's weight is the head's, too
                           Step{"lstm-lm", "lstm_lm"}, Step{"resnet18", "resnet18"}, Step{"gpt2", "gpt2"}})
    expect_recorded_backward(std::string("tests/data/recordings/") + step.recording + ".log.gz",
                             std::string("tests/data/models/") + step.model + ".pt2");
}

TEST(RecordedBackward, OfMoreModels) {
  const char* given = std::getenv("METAPROF_SHARED");
  const fs::path shared = given ? fs::path(given) : fs::path("..") / "shared";
  if (!fs::exists(shared / "recordings" / "models"))
    GTEST_SKIP() << shared.string() << " is not there: set METAPROF_SHARED";
  for (const char* name :
       {"bert-base", "mlp", "alexnet", "autoencoder", "unet", "whisper-tiny", "tiny-llama", "tiny-mixtral",
        "lora-mlp", "transformer-encoder", "vit-b-16", "t5-small", "distilbert", "dlrm"}) {
    std::string model = name;
    std::replace(model.begin(), model.end(), '-', '_');
    expect_recorded_backward((shared / "recordings" / "models" / (std::string(name) + ".log.gz")).string(),
                             (shared / "models" / (model + ".pt2")).string());
  }
}

}  // namespace
}  // namespace metaprof
