#include "program/source/subscripts.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "program/source/frames.h"

namespace metaprof {
namespace {

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase_if(out, [](unsigned char c) { return std::isspace(c); });
  return out;
}

bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

SubscriptItem item_of(std::string_view text, bool has_colon) {
  const std::string item = without_blanks(text);
  if (has_colon) {
    constexpr std::string_view kAll[] = {":", "::", "::1", "0:", "0::", "0::1"};
    const bool all = std::ranges::find(kAll, item) != std::end(kAll);
    return all ? SubscriptItem::everything : SubscriptItem::range;
  }
  if (item == "None") return SubscriptItem::new_axis;
  if (item == "...") return SubscriptItem::ellipsis;
  return is_number(item) ? SubscriptItem::number : SubscriptItem::expression;
}

// Reads a line once; every bracket that is open has its items so far.
class SubscriptReader {
 public:
  explicit SubscriptReader(std::string_view code) : code_(code) {}

  std::vector<Subscript> run() {
    for (at_ = 0; at_ < code_.size() && code_[at_] != '#'; ++at_) read(code_[at_]);
    return std::move(found_);
  }

 private:
  struct Bracket {
    bool subscript;
    size_t item;  // where the item begins
    bool colon = false;
    Subscript items = {};
  };

  void read(char c) {
    if (c == '"' || c == '\'') return skip_text(c);
    if (c == '(' || c == '{' || c == '[') {
      open_.push_back({.subscript = c == '[' && follows_a_value(), .item = at_ + 1});
    } else if (open_.empty()) {
      return;
    } else if (c == ')' || c == '}' || c == ']') {
      end_item(false);
      if (open_.back().subscript && c == ']') found_.push_back(std::move(open_.back().items));
      open_.pop_back();
    } else if (c == ',') {
      end_item(true);
    } else if (c == ':') {
      open_.back().colon = true;
    }
  }

  // An item may be empty behind the last comma only: `x[0,]`.
  void end_item(bool comma) {
    Bracket& bracket = open_.back();
    const std::string_view text = code_.substr(bracket.item, at_ - bracket.item);
    if (comma || !without_blanks(text).empty()) bracket.items.push_back(item_of(text, bracket.colon));
    bracket.item = at_ + 1;
    bracket.colon = false;
  }

  bool follows_a_value() const {
    if (at_ == 0) return false;
    const char before = code_[at_ - 1];
    return is_of_name(before) || before == ')' || before == ']';
  }

  void skip_text(char quote) {
    for (++at_; at_ < code_.size() && code_[at_] != quote; ++at_) at_ += code_[at_] == '\\';
  }

  const std::string_view code_;
  size_t at_ = 0;
  std::vector<Bracket> open_;
  std::vector<Subscript> found_;
};

}  // namespace

std::vector<Subscript> subscripts_in(std::string_view code) { return SubscriptReader(code).run(); }

}  // namespace metaprof
