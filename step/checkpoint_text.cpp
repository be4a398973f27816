#include "step/checkpoint_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr int kDeepest = 64;

// Words, and braces, which stand for themselves.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens(1);
  for (const char c : text) {
    const bool brace = c == '{' || c == '}', blank = c == ' ' || c == '\t' || c == '\n';
    if ((brace || blank) && !tokens.back().empty()) tokens.emplace_back();
    if (brace) {
      tokens.back() = c;
      tokens.emplace_back();
    }
    if (!brace && !blank) tokens.back() += c;
  }
  if (tokens.back().empty()) tokens.pop_back();
  return tokens;
}

class Reader {
 public:
  explicit Reader(const std::string& text) : tokens_(tokens_of(text)) {}

  std::vector<CheckpointItem> read() {
    std::vector<CheckpointItem> items = read_items(nullptr, 0);
    if (next_ < tokens_.size()) fail("--checkpoint: a '}}' closes nothing");
    return items;
  }

 private:
  // Up to the brace that closes; words about the item around them are noted there.
  std::vector<CheckpointItem> read_items(CheckpointItem* around, int depth) {
    if (depth > kDeepest) fail("--checkpoint: more than {} checkpoints inside each other", kDeepest);
    std::vector<CheckpointItem> items;
    for (; next_ < tokens_.size() && tokens_[next_] != "}"; ++next_) {
      const std::string& word = tokens_[next_];
      if (word == "{") {
        if (items.empty() || tokens_[next_ - 1] == "}") fail("--checkpoint: '{{' follows no module");
        ++next_;
        items.back().inside = read_items(&items.back(), depth + 1);
        if (next_ == tokens_.size()) fail("--checkpoint: '{}{{' is not closed with '}}'", items.back().first);
        check(items.back());
      } else if (word[0] == '=' || word[0] == '>') {
        if (!around) fail("--checkpoint: '{}' stands in the braces of no module", word);
        if (word[0] == '=')
          around->kept.push_back(read_kept(word));
        else if (word == ">host")
          around->offload = true;
        else
          fail("--checkpoint: '{}' is not '>host'", word);
      } else {
        items.push_back(read_modules(word));
      }
    }
    return items;
  }

  static CheckpointItem read_modules(const std::string& word) {
    CheckpointItem item;
    const size_t dots = word.find("..");
    item.first = word.substr(0, dots);
    if (dots != std::string::npos) item.last = word.substr(dots + 2);
    if (item.first.empty() || (dots != std::string::npos && item.last.empty()))
      fail("--checkpoint: '{}' is not first..last", word);
    return item;
  }

  // "=mm", "=mm:0,2"
  static KeptCalls read_kept(const std::string& word) {
    const size_t colon = word.find(':');
    KeptCalls kept{.op = word.substr(1, colon == std::string::npos ? colon : colon - 1), .which = {}};
    if (kept.op.empty()) fail("--checkpoint: '{}' names no operator", word);
    if (colon == std::string::npos) return kept;
    const char *at = word.data() + colon + 1, *end = word.data() + word.size();
    for (;;) {
      int number = -1;
      const auto [rest, error] = std::from_chars(at, end, number);
      if (error != std::errc() || number < 0 || (rest != end && *rest != ','))
        fail("--checkpoint: '{}' is not =OPERATOR:N,N … with numbers of calls, from 0", word);
      kept.which.push_back(number);
      if (rest == end) break;
      at = rest + 1;
    }
    std::ranges::sort(kept.which);
    return kept;
  }

  static void check(const CheckpointItem& item) {
    if (!item.kept.empty() && (item.offload || !item.inside.empty()))
      fail("--checkpoint: '{}' keeps results of operators, so nothing else can be said of it", item.first);
    for (const CheckpointItem& inner : item.inside)
      if (!inner.kept.empty())
        fail(
            "--checkpoint: '{}' keeps results of operators inside a module that is computed again: they "
            "would be kept twice",
            inner.first);
  }

  const std::vector<std::string> tokens_;
  size_t next_ = 0;
};

}  // namespace

std::vector<CheckpointItem> checkpoint_items(const std::string& text) { return Reader(text).read(); }

}  // namespace metaprof
