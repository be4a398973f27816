#include "core/formats/pickle_reader.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <unordered_map>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr size_t kMostOpen = 1000;

}  // namespace

// The stack machine of pickletools.py. What would call or import is refused, or described.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, size_t most_values)
      : pickle_(pickle), bytes_(pickle.bytes_), most_values_(most_values) {}

  uint32_t run() {
    for (;;) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return pop();
      if (!run_number(code) && !run_text(code) && !run_collection(code) && !run_memo(code) &&
          !(pickle_.calls_ && run_call(code)))
        refuse(code);
    }
  }

 private:
  using Kind = Pickle::Kind;

  [[noreturn]] void broken(std::string_view what) const {
    fail("{}: is no pickle, or was cut off: {} at byte {}", pickle_.name_, what, at_);
  }

  [[noreturn]] void refuse(unsigned char code) const {
    const bool calls = std::string_view("cioRb\x81\x82\x83\x84\x92\x93PQ").find(static_cast<char>(code)) !=
                       std::string_view::npos;
    if (calls)
      fail("{}: byte {} would import or call something (opcode 0x{:02x}); only plain data is read",
           pickle_.name_, at_ - 1, code);
    fail("{}: byte {} is no part of plain data (opcode 0x{:02x}); is it what {} wrote?", pickle_.name_,
         at_ - 1, code, pickle_.writer());
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) broken("it ends too early");
    const std::string_view taken = std::string_view(bytes_).substr(at_, count);
    at_ += count;
    return taken;
  }
  uint64_t unsigned_number(size_t bytes) {
    uint64_t number = 0;
    const std::string_view text = take(bytes);
    for (size_t i = 0; i < bytes; ++i) number |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return number;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string::npos) broken("it ends too early");
    std::string_view text = take(end - at_ + 1);
    text.remove_suffix(1);
    return text;
  }

  uint32_t add(Kind kind, int64_t number, uint32_t length = 0) {
    if (pickle_.nodes_.size() == most_values_)
      fail("{}: has more than {} values", pickle_.name_, most_values_);
    pickle_.nodes_.push_back({kind, length, number});
    return static_cast<uint32_t>(pickle_.nodes_.size() - 1);
  }
  bool push(Kind kind, int64_t number, uint32_t length = 0) {
    stack_.push_back(add(kind, number, length));
    return true;
  }
  bool push_text(std::string_view text, Kind kind = Kind::text) {
    if (text.size() > UINT32_MAX) broken("a text is too long");
    return push(kind, text.data() - bytes_.data(), static_cast<uint32_t>(text.size()));
  }
  bool push_collection(Kind kind, std::vector<uint32_t> elements) {
    pickle_.collections_.push_back(std::move(elements));
    return push(kind, static_cast<int64_t>(pickle_.collections_.size() - 1));
  }
  uint32_t pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) broken("a value is missing");
    const uint32_t node = stack_.back();
    stack_.pop_back();
    return node;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) broken("a mark is missing");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<uint32_t> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  bool push_tuple(size_t size) {
    std::vector<uint32_t> values(size);
    for (size_t i = size; i-- > 0;) values[i] = pop();
    return push_collection(Kind::tuple, std::move(values));
  }
  bool extend(Kind kind, const std::vector<uint32_t>& values) {
    const uint32_t node = pop();
    const Pickle::Node& target = pickle_.nodes_[node];
    if (target.kind != kind || (kind == Kind::dictionary && values.size() % 2 != 0))
      broken("a collection of another kind");
    auto& elements = pickle_.collections_[static_cast<size_t>(target.number)];
    elements.insert(elements.end(), values.begin(), values.end());
    stack_.push_back(node);
    return true;
  }
  bool extend_by_popped(Kind kind, size_t count) {
    std::vector<uint32_t> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return extend(kind, values);
  }

  bool push_decimal(std::string_view text) {
    int64_t number = 0;
    if (text.ends_with('L')) text.remove_suffix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      broken("a number is malformed, or larger than 64 bits");
    return push(Kind::integer, number);
  }
  bool push_long(uint64_t bytes) {
    if (bytes > 8) broken("a number is larger than 64 bits");
    uint64_t number = unsigned_number(bytes);
    if (bytes > 0 && bytes < 8 && (number >> (8 * bytes - 1)) != 0) number |= ~uint64_t{0} << (8 * bytes);
    return push(Kind::integer, static_cast<int64_t>(number));
  }
  bool push_real() {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return push(Kind::real, static_cast<int64_t>(bits));
  }

  bool run_number(unsigned char code) {
    switch (code) {
      case 'N': return push(Kind::none, 0);
      case 0x88: return push(Kind::boolean, 1);
      case 0x89: return push(Kind::boolean, 0);
      case 'K': return push(Kind::integer, static_cast<int64_t>(unsigned_number(1)));
      case 'M': return push(Kind::integer, static_cast<int64_t>(unsigned_number(2)));
      case 'J': return push(Kind::integer, static_cast<int32_t>(unsigned_number(4)));
      case 0x8a: return push_long(unsigned_number(1));
      case 0x8b: return push_long(unsigned_number(4));
      case 'G': return push_real();
      case 'I': {
        const std::string_view text = line();  // "00" and "01" are booleans
        if (text == "00" || text == "01") return push(Kind::boolean, text == "01");
        return push_decimal(text);
      }
      case 'L': return push_decimal(line());
      case 'F': line(); return push(Kind::real, 0);  // no figure that is read is one
      default: return false;
    }
  }

  bool run_text(unsigned char code) {
    switch (code) {
      case 0x8c: return push_text(take(unsigned_number(1)));
      case 'X': return push_text(take(unsigned_number(4)));
      case 0x8d: return push_text(take(unsigned_number(8)));
      case 'V': return push_text(line());  // escapes stay as they are written
      default: return false;
    }
  }

  bool run_collection(unsigned char code) {
    switch (code) {
      case '(':
        if (marks_.size() == kMostOpen) fail("{}: more than {} open collections", pickle_.name_, kMostOpen);
        marks_.push_back(stack_.size());
        return true;
      case '}': return push_collection(Kind::dictionary, {});
      case ']': return push_collection(Kind::list, {});
      case ')': return push_collection(Kind::tuple, {});
      case 0x85: return push_tuple(1);
      case 0x86: return push_tuple(2);
      case 0x87: return push_tuple(3);
      case 't': return push_collection(Kind::tuple, pop_to_mark());
      case 'l': return push_collection(Kind::list, pop_to_mark());
      case 'd': {
        const std::vector<uint32_t> values = pop_to_mark();
        push_collection(Kind::dictionary, {});
        return extend(Kind::dictionary, values);
      }
      case 'a': return extend_by_popped(Kind::list, 1);
      case 's': return extend_by_popped(Kind::dictionary, 2);
      case 'e': {
        const std::vector<uint32_t> values = pop_to_mark();
        return extend(Kind::list, values);
      }
      case 'u': {
        const std::vector<uint32_t> values = pop_to_mark();
        return extend(Kind::dictionary, values);
      }
      case '0': pop(); return true;
      default: return false;
    }
  }

  bool run_call(unsigned char code) {
    switch (code) {
      case 'c': {
        const size_t begin = at_;
        const std::string_view module = line();
        const size_t length = module.size() + 1 + line().size();
        bytes_[begin + module.size()] = ' ';  // the end of the first line
        return push_text(std::string_view(bytes_).substr(begin, length), Kind::global);
      }
      case 'R':
      case 0x81: {
        const uint32_t arguments = pop(), callee = pop();
        return push_collection(Kind::call, {callee, arguments});
      }
      case 'b': {
        const uint32_t state = pop();
        return extend(Kind::call, {state});
      }
      case 'Q': return push_collection(Kind::persistent, {pop()});
      default: return false;
    }
  }

  bool run_memo(unsigned char code) {
    switch (code) {
      case 0x80: return version(unsigned_number(1));
      case 0x95: unsigned_number(8); return true;  // a frame: only its length
      case 0x94: return remember(memo_.size());
      case 'q': return remember(unsigned_number(1));
      case 'r': return remember(unsigned_number(4));
      case 'p': return remember(decimal_index());
      case 'h': return recall(unsigned_number(1));
      case 'j': return recall(unsigned_number(4));
      case 'g': return recall(decimal_index());
      default: return false;
    }
  }
  bool version(uint64_t protocol) {
    if (protocol > 5) fail("{}: protocol {} of pickle is not known", pickle_.name_, protocol);
    return true;
  }
  uint64_t decimal_index() {
    push_decimal(line());
    return static_cast<uint64_t>(pickle_.nodes_[pop()].number);
  }
  bool remember(uint64_t index) {
    const uint32_t node = pop();
    stack_.push_back(node);
    memo_[index] = node;
    return true;
  }
  bool recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) broken("a value that was not remembered");
    stack_.push_back(found->second);
    return true;
  }

  Pickle& pickle_;
  std::string& bytes_;
  const size_t most_values_;
  size_t at_ = 0;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

Pickle::Pickle(std::string bytes, std::string name, size_t most_values)
    : Pickle(std::move(bytes), std::move(name), most_values, false) {}

Pickle::Pickle(std::string bytes, std::string name, size_t most_values, bool calls)
    : bytes_(std::move(bytes)), name_(std::move(name)), calls_(calls) {
  root_ = PickleMachine(*this, most_values).run();
}

std::string_view Pickle::writer() const {
  return calls_ ? "torch.jit.save" : "torch.cuda.memory._dump_snapshot";
}

Pickle Pickle::with_calls(std::string bytes, std::string name) {
  return {std::move(bytes), std::move(name), kMostValues, true};
}

void PickleValue::reject(std::string_view expected) const {
  constexpr const char* kNames[] = {"None",    "a boolean", "an integer",     "a real number",
                                    "a text",  "a list",    "a tuple",        "a dictionary",
                                    "a class", "a call",    "a value outside"};
  fail("{}: expected {}, got {}; is it what {} wrote?", pickle_->name_, expected,
       kNames[static_cast<size_t>(pickle_->nodes_[node_].kind)], pickle_->writer());
}

PickleKind PickleValue::kind() const { return pickle_->nodes_[node_].kind; }

int64_t PickleValue::integer() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != Pickle::Kind::integer && node.kind != Pickle::Kind::boolean) reject("an integer");
  return node.number;
}

double PickleValue::real() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != Pickle::Kind::real) return static_cast<double>(integer());
  return std::bit_cast<double>(node.number);
}

std::string_view PickleValue::text() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != Pickle::Kind::text && node.kind != Pickle::Kind::global) reject("a text");
  return std::string_view(pickle_->bytes_).substr(static_cast<size_t>(node.number), node.length);
}

size_t PickleValue::size() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != Pickle::Kind::list && node.kind != Pickle::Kind::tuple &&
      node.kind != Pickle::Kind::call && node.kind != Pickle::Kind::persistent)
    reject("a list");
  return pickle_->collections_[static_cast<size_t>(node.number)].size();
}

PickleValue PickleValue::element(size_t index) const {
  if (index >= size()) reject("a longer list");
  return {*pickle_, pickle_->collections_[static_cast<size_t>(pickle_->nodes_[node_].number)][index]};
}

std::optional<PickleValue> PickleValue::find(std::string_view key) const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != Pickle::Kind::dictionary) reject("a dictionary");
  const auto& elements = pickle_->collections_[static_cast<size_t>(node.number)];
  for (size_t i = elements.size(); i >= 2; i -= 2) {  // the last entry of a key is the one that counts
    const PickleValue name(*pickle_, elements[i - 2]);
    if (pickle_->nodes_[name.node_].kind == Pickle::Kind::text && name.text() == key)
      return PickleValue(*pickle_, elements[i - 1]);
  }
  return std::nullopt;
}

PickleValue PickleValue::at(std::string_view key) const {
  const auto found = find(key);
  if (!found) fail("{}: '{}' is missing; is it what {} wrote?", pickle_->name_, key, pickle_->writer());
  return *found;
}

std::vector<std::pair<PickleValue, PickleValue>> PickleValue::entries() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != Pickle::Kind::dictionary) reject("a dictionary");
  std::vector<std::pair<PickleValue, PickleValue>> entries;
  const auto& elements = pickle_->collections_[static_cast<size_t>(node.number)];
  for (size_t i = 1; i < elements.size(); i += 2)
    entries.emplace_back(PickleValue(*pickle_, elements[i - 1]), PickleValue(*pickle_, elements[i]));
  return entries;
}

std::vector<PickleValue> PickleValue::values() const {
  std::vector<PickleValue> values;
  for (const auto& [key, value] : entries()) values.push_back(value);
  return values;
}

}  // namespace metaprof
