#include "validation/recordings/case_log.h"

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof {
namespace {

constexpr size_t kLargestBlock = 1 << 27;

// "shapes/sdpa/bf16/2x8x128x64-backendflash": recordings whose recorder had no `# modes` say by the name that
// the case ran within torch.nn.attention.sdpa_kernel.
std::string attention_in_name(std::string_view name) {
  TextCursor cursor(name.substr(std::min(name.find("-backend"), name.size())));
  if (!cursor.accept("-backend")) return {};
  for (const char* implementation : {"flash", "efficient", "math", "cudnn"})
    if (cursor.accept(implementation)) return implementation;
  fail("'{}' names no implementation of attention", name);
}

class BlockReader {
 public:
  explicit BlockReader(RecordedCase& recorded) : case_(recorded) {}

  void read() {
    std::string_view rest = *case_.text;
    int64_t number = case_.line;
    while (!rest.empty()) {
      const size_t stop = std::min(rest.find('\n'), rest.size());
      line_ = number++;
      try {
        if (stop > 0) read_line(rest.substr(0, stop));
      } catch (const Error& error) {
        fail("{}:{}: {}", case_.file, line_, error.what());
      }
      rest.remove_prefix(std::min(stop + 1, rest.size()));
    }
    if (!ended_) fail("{}:{}: case {} has no '# end'", case_.file, line_, case_.name);
    if (log_.depth() != 0) fail("{}:{}: case {} ends within an operator", case_.file, line_, case_.name);
    if (case_.device.empty()) fail("{}:{}: case {} has no '# device'", case_.file, case_.line, case_.name);
  }

 private:
  void read_line(std::string_view text) {
    const LogLine line = log_.read(text, line_);
    if (line.kind == LogLine::Kind::title) {
      case_.name = line.text;
      case_.attention = attention_in_name(line.text);
    } else if (line.kind == LogLine::Kind::mark) {
      read_mark(line.text);
    } else {
      if (!section_) fail("'{}' stands outside of forward and backward", text);
      section_->push_back(line);
    }
  }

  void read_mark(std::string_view text) {
    TextCursor mark(text);
    const std::string_view word = mark.part(' ');
    if (log_.depth() != 0 && (word == "forward" || word == "backward"))
      fail("'# {}' stands within an operator", word);
    if (word == "input" || word == "output" || word == "incoming" || word == "grad") {
      NamedTensor named;
      named.name = mark.part(' ');
      named.value = one_value(mark.rest());
      list_for(word).push_back(std::move(named));
    } else if (word == "device") {
      const std::string_view type = mark.part(' ');
      case_.device = type == "cpu" ? type : mark.part(' ');
      if (mark.part(' ') == "dtype") case_.dtype = mark.part(' ');
    } else if (word == "modes") {
      read_modes(mark);
    } else if (word == "forward") {
      section_ = &case_.forward;
    } else if (word == "backward") {
      read_backward(mark);
    } else if (word == "roots") {
      while (!mark.at_end()) case_.roots.emplace_back(mark.part(' '));
    } else if (word == "node") {
      read_node(mark);
    } else if (word == "saved") {
      read_saved(mark);
    } else if (text == "reads device memory") {
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

  void read_modes(TextCursor mark) {
    while (!mark.at_end()) {
      TextCursor mode(mark.part(' '));
      if (mode.part('=') != "attention") fail("'# modes': expected attention=IMPLEMENTATION");
      case_.attention = mode.rest();
    }
  }

  void read_backward(TextCursor mark) {
    if (mark.part(' ') == "fails") {
      case_.backward_fails = mark.rest();
    } else {
      case_.has_backward = true;
      section_ = &case_.backward;
    }
  }

  void read_node(TextCursor mark) {
    const int64_t index = integer(mark.part(' '));
    if (index != static_cast<int64_t>(case_.nodes.size()))
      fail("node {} where {} was expected", index, case_.nodes.size());
    RecordedNode node;
    node.name = mark.part(' ');
    while (!mark.at_end()) node.edges.emplace_back(mark.part(' '));
    case_.nodes.push_back(std::move(node));
    case_.has_nodes = true;
  }

  void read_saved(TextCursor mark) {
    const std::string_view node = mark.part(' ');
    const size_t colon = node.rfind(':');
    if (colon == node.npos) fail("'{}' is not NODE:NUMBER", node);
    RecordedSaved saved;
    saved.node_name = node.substr(0, colon);
    const int64_t index = integer(node.substr(colon + 1));
    if (index < 0 || index >= static_cast<int64_t>(case_.nodes.size())) fail("there is no node {}", index);
    saved.node = static_cast<size_t>(index);
    saved.name = mark.part(' ');
    saved.value = one_value(mark.rest());
    case_.saved.push_back(std::move(saved));
    case_.has_saved = true;
  }

  static RecordedValue one_value(std::string_view text) {
    std::vector<RecordedValue> values = parse_values(text);
    if (values.size() != 1) fail("'{}' is not one value", text);
    return std::move(values[0]);
  }

  static int64_t integer(std::string_view text) {
    const auto number = whole_number(text);
    if (!number) fail("'{}' is not an integer", text);
    return *number;
  }

  RecordedCase& case_;
  LogReader log_{10};
  std::vector<LogLine>* section_ = nullptr;
  int64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace

// The lines from "= NAME" to the one before the next.
bool CaseLog::read_block(std::string& text, int64_t& first_line) {
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

bool CaseLog::next(RecordedCase& recorded) {
  auto text = std::make_shared<std::string>();
  recorded = RecordedCase();
  if (!read_block(*text, recorded.line)) return false;
  recorded.text = std::move(text);
  recorded.file = lines_.path();
  BlockReader(recorded).read();
  return true;
}

}  // namespace metaprof
