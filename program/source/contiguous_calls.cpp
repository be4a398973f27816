#include "program/source/contiguous_calls.h"

#include <algorithm>

#include "program/source/frames.h"

namespace metaprof {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool is_blank(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c == ' ' || c == '\t'; });
}

// A line without its comment, and which brackets of it belong together.
class BracketedLine {
 public:
  explicit BracketedLine(std::string_view code) : code_(code), partner_(code.size(), kNone) {
    std::vector<size_t> open;
    for (size_t i = 0; i < code_.size(); ++i) {
      const char c = code_[i];
      if (c == '#') code_ = code_.substr(0, i);
      if (c == '"' || c == '\'') i = end_of_text(i);
      if (c == '(' || c == '[' || c == '{') open.push_back(i);
      if ((c != ')' && c != ']' && c != '}') || open.empty()) continue;
      partner_[open.back()] = i;
      partner_[i] = open.back();
      open.pop_back();
    }
  }

  std::string_view code() const { return code_; }
  /// Of a bracket; kNone: the other one stands in another line.
  size_t partner(size_t bracket) const { return partner_[bracket]; }

  /// Where the name begins that ends before this place.
  size_t begin_of_name(size_t end) const {
    while (end > 0 && is_of_name(code_[end - 1])) --end;
    return end;
  }

  /// Where the expression begins that ends before this place: names, attributes, calls and subscripts.
  size_t begin_of_primary(size_t end) const {
    while (end > 0) {
      const char c = code_[end - 1];
      if (is_of_name(c) || c == '.')
        --end;
      else if ((c == ')' || c == ']') && partner_[end - 1] != kNone)
        end = partner_[end - 1];
      else
        break;
    }
    return end;
  }

  /// The innermost bracket that is open at this place; kNone: there is none.
  size_t enclosing(size_t place) const {
    while (place-- > 0) {
      const char c = code_[place];
      if ((c == ')' || c == ']' || c == '}') && partner_[place] != kNone)
        place = partner_[place];
      else if (c == '(' || c == '[' || c == '{')
        return place;
    }
    return kNone;
  }

  /// The call whose brackets open here; nothing: no name stands before them.
  std::optional<NamedCall> call_at(size_t open) const {
    const size_t begin = begin_of_name(open);
    if (begin == open) return {};
    const std::string_view name = code_.substr(begin, open - begin);
    return NamedCall{name, times_called(code_.substr(0, begin), name)};
  }

 private:
  size_t end_of_text(size_t quote) const {
    size_t i = quote + 1;
    while (i < code_.size() && code_[i] != code_[quote]) i += code_[i] == '\\' ? 2 : 1;
    return std::min(i, code_.size());
  }

  std::string_view code_;
  std::vector<size_t> partner_;
};

// "y =" and "return", in front of an expression.
bool binds_or_returns(std::string_view before) {
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  if (before.ends_with("return")) return true;
  if (!before.ends_with('=')) return false;
  before.remove_suffix(1);
  constexpr std::string_view kOfOtherOperators = "=!<>+-*/%&|^@:";
  return before.empty() || kOfOtherOperators.find(before.back()) == kNone;
}

// "memory_format=torch.channels_last"
MemoryFormat format_of(std::string_view arguments) {
  if (contains_word(arguments, "channels_last")) return MemoryFormat::channels_last;
  return contains_word(arguments, "channels_last_3d") ? MemoryFormat::channels_last_3d
                                                      : MemoryFormat::contiguous;
}

class ContiguousReader {
 public:
  explicit ContiguousReader(std::string_view code) : line_(code), code_(line_.code()) {}

  std::vector<ContiguousCall> run() const {
    constexpr std::string_view kCall = ".contiguous(";
    std::vector<ContiguousCall> found;
    for (size_t at = code_.find(kCall); at != kNone; at = code_.find(kCall, at + 1)) {
      const size_t open = at + kCall.size() - 1, close = line_.partner(open);
      if (close != kNone && at > 0) found.push_back(read(at, open, close));
    }
    return found;
  }

 private:
  ContiguousCall read(size_t dot, size_t open, size_t close) const {
    ContiguousCall call;
    call.format = format_of(code_.substr(open + 1, close - open - 1));
    if (code_[dot - 1] == ')' && line_.partner(dot - 1) != kNone)
      call.of = line_.call_at(line_.partner(dot - 1));
    if (const auto method = method_at(close + 1)) {
      call.then = method;
      return call;
    }
    const size_t begin = line_.begin_of_primary(dot);
    call.is_whole = is_blank(code_.substr(close + 1)) && binds_or_returns(code_.substr(0, begin));
    read_argument(begin, close + 1, call);
    return call;
  }

  std::optional<NamedCall> method_at(size_t dot) const {
    if (dot >= code_.size() || code_[dot] != '.') return {};
    size_t end = dot + 1;
    while (end < code_.size() && is_of_name(code_[end])) ++end;
    if (end == code_.size() || code_[end] != '(') return {};
    return line_.call_at(end);
  }

  // Of a call whose argument from `begin` to `end` is this alone.
  void read_argument(size_t begin, size_t end, ContiguousCall& call) const {
    const size_t open = line_.enclosing(begin);
    if (open == kNone || code_[open] != '(') return;
    const size_t next = code_.find_first_not_of(' ', end);
    if (next != kNone && code_[next] != ',' && code_[next] != ')') return;
    size_t item = open + 1;
    for (size_t i = item; i < begin; ++i) {
      const char c = code_[i];
      if ((c == '(' || c == '[' || c == '{') && line_.partner(i) != kNone) i = line_.partner(i);
      if (c != ',') continue;
      item = i + 1;
      ++call.argument;
    }
    if (is_blank(code_.substr(item, begin - item))) call.within = line_.call_at(open);
  }

  const BracketedLine line_;
  const std::string_view code_;
};

}  // namespace

std::vector<ContiguousCall> contiguous_calls_in(std::string_view code) {
  return ContiguousReader(code).run();
}

Receiver receiver_of(std::string_view code, NamedCall method) {
  const BracketedLine line(code);
  code = line.code();
  int number = 0;
  for (size_t at = code.find(method.name); at != kNone; at = code.find(method.name, at + 1)) {
    if (!code.substr(at + method.name.size()).starts_with('(') || (at > 0 && is_of_name(code[at - 1])))
      continue;
    if (number++ != method.number) continue;
    if (at < 2 || code[at - 1] != '.') return {};
    const size_t end = at - 1;
    if (code[end - 1] == ')' && line.partner(end - 1) != kNone) {
      const auto call = line.call_at(line.partner(end - 1));
      return {.call = call ? call->name : std::string_view(), .variable = {}};
    }
    const size_t begin = line.begin_of_primary(end);
    return {.call = {}, .variable = code.substr(begin, end - begin)};
  }
  return {};
}

}  // namespace metaprof
