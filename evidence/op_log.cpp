#include "evidence/op_log.h"

#include <charconv>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr size_t kLargestBlock = 1 << 27;

std::string_view take_word(std::string_view& text) {
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

class BlockReader {
 public:
  BlockReader(RecordedCase& recorded) : case_(recorded) {}

  void read() {
    std::string_view rest = *case_.text;
    int64_t number = case_.line;
    while (!rest.empty()) {
      const size_t stop = std::min(rest.find('\n'), rest.size());
      line_ = number++;
      try {
        read_line(rest.substr(0, stop));
      } catch (const Error& error) {
        fail("{}:{}: {}", case_.file, line_, error.what());
      }
      rest.remove_prefix(std::min(stop + 1, rest.size()));
    }
    if (!ended_) fail("{}:{}: case {} has no '# end'", case_.file, line_, case_.name);
    if (depth_ != 0) fail("{}:{}: case {} ends within an operator", case_.file, line_, case_.name);
    if (case_.device.empty()) fail("{}:{}: case {} has no '# device'", case_.file, case_.line, case_.name);
  }

 private:
  void read_line(std::string_view line) {
    if (line.starts_with("= ")) {
      case_.name = line.substr(2);
    } else if (line.starts_with("# ")) {
      read_mark(line.substr(2));
    } else if (!line.empty()) {
      if (!section_) fail("'{}' stands outside of forward and backward", line);
      section_->push_back(read_event(line));
    }
  }

  RecordedLine read_event(std::string_view line) {
    RecordedLine event{.depth = depth_, .number = line_};
    const char kind = line[0];
    std::string_view rest = line.substr(std::min<size_t>(2, line.size()));
    if (kind == '>') {
      event.kind = RecordedLine::Kind::begin;
      if (rest.starts_with("evaluate ")) {
        event.name = rest;
      } else {
        event.name = take_word(rest);
        event.text = rest;
      }
      ++depth_;
    } else if (kind == '<') {
      if (depth_ == 0) fail("'<' without '>'");
      event.kind = RecordedLine::Kind::end;
      event.depth = --depth_;
      event.text = rest;
    } else if (kind == '+') {
      event.kind = RecordedLine::Kind::allocate;
      event.storage = integer(take_word(rest));
      event.bytes = integer(take_word(rest));
    } else if (kind == '-') {
      event.kind = RecordedLine::Kind::free;
      event.storage = integer(take_word(rest));
    }
    return event;
  }

  void read_mark(std::string_view mark) {
    const std::string_view whole = mark;
    const std::string_view word = take_word(mark);
    if (word == "input" || word == "output" || word == "incoming" || word == "grad") {
      NamedTensor named;
      named.name = take_word(mark);
      named.value = one_value(mark);
      list_for(word).push_back(std::move(named));
    } else if (word == "device") {
      const std::string_view type = take_word(mark);
      case_.device = type == "cpu" ? type : take_word(mark);
      if (take_word(mark) == "dtype") case_.dtype = take_word(mark);
    } else if (word == "forward") {
      section_ = &case_.forward;
    } else if (word == "backward") {
      read_backward(mark);
    } else if (word == "roots") {
      while (!mark.empty()) case_.roots.emplace_back(take_word(mark));
    } else if (word == "node") {
      read_node(mark);
    } else if (word == "saved") {
      read_saved(mark);
    } else if (whole == "reads device memory") {
      case_.reads_device_memory = true;
    } else if (word == "end") {
      ended_ = true;
    }
  }

  std::vector<NamedTensor>& list_for(std::string_view word) {
    if (word == "input") return case_.inputs;
    if (word == "output") return case_.outputs;
    return word == "incoming" ? case_.incoming : case_.gradients;
  }

  void read_backward(std::string_view mark) {
    if (take_word(mark) == "fails") {
      case_.backward_fails = mark;
    } else {
      case_.has_backward = true;
      section_ = &case_.backward;
    }
  }

  void read_node(std::string_view mark) {
    const int64_t index = integer(take_word(mark));
    if (index != static_cast<int64_t>(case_.nodes.size()))
      fail("node {} where {} was expected", index, case_.nodes.size());
    RecordedNode node;
    node.name = take_word(mark);
    while (!mark.empty()) node.edges.emplace_back(take_word(mark));
    case_.nodes.push_back(std::move(node));
    case_.has_nodes = true;
  }

  void read_saved(std::string_view mark) {
    const std::string_view node = take_word(mark);
    const size_t colon = node.rfind(':');
    if (colon == node.npos) fail("'{}' is not NODE:NUMBER", node);
    RecordedSaved saved;
    saved.node_name = node.substr(0, colon);
    const int64_t index = integer(node.substr(colon + 1));
    if (index < 0 || index >= static_cast<int64_t>(case_.nodes.size())) fail("there is no node {}", index);
    saved.node = static_cast<size_t>(index);
    saved.name = take_word(mark);
    saved.value = one_value(mark);
    case_.saved.push_back(std::move(saved));
    case_.has_saved = true;
  }

  static RecordedValue one_value(std::string_view text) {
    std::vector<RecordedValue> values = parse_values(text);
    if (values.size() != 1) fail("'{}' is not one value", text);
    return std::move(values[0]);
  }

  static int64_t integer(std::string_view text) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) fail("'{}' is not an integer", text);
    return number;
  }

  RecordedCase& case_;
  std::vector<RecordedLine>* section_ = nullptr;
  int depth_ = 0;
  int64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace

// The lines from "= NAME" to the one before the next.
bool OpLog::read_block(std::string& text, int64_t& first_line) {
  text.clear();
  std::string_view line;
  if (!pending_.empty()) {
    text = std::exchange(pending_, {});
    first_line = pending_line_;
  }
  while (lines_.next(line)) {
    if (line.starts_with("= ")) {
      if (!text.empty()) {
        pending_ = line;
        pending_line_ = lines_.number();
        return true;
      }
      first_line = lines_.number();
      text = line;
      continue;
    }
    if (text.empty()) {
      if (line.empty()) continue;
      fail("{}:{}: expected '= NAME', got '{}'; is this a recording of operator cases?", lines_.path(),
           lines_.number(), line.substr(0, 60));
    }
    text += '\n';
    text += line;
    if (text.size() > kLargestBlock)
      fail("{}:{}: the case is larger than 128 MiB", lines_.path(), lines_.number());
  }
  return !text.empty();
}

bool OpLog::next(RecordedCase& recorded) {
  auto text = std::make_shared<std::string>();
  recorded = RecordedCase();
  if (!read_block(*text, recorded.line)) return false;
  recorded.text = std::move(text);
  recorded.file = lines_.path();
  BlockReader(recorded).read();
  return true;
}

}  // namespace metaprof
