#include "validation/recordings/log_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof {
namespace {

constexpr int64_t kMostStreams = 1 << 15;

[[noreturn]] void no_line(std::string_view line) {
  fail("'{}' is not a line of a recording", line.substr(0, 60));
}

// The fields behind the sign of a line.
class Fields {
 public:
  Fields(std::string_view line, int base) : line_(line), cursor_(line.substr(2)), base_(base) {}

  void block(LogLine& result) { result.block = number(base_); }
  void bytes(LogLine& result) { result.bytes = number(10); }
  // " sK" and " pI.J", which may be there.
  void place(LogLine& result) {
    if (cursor_.accept("s")) {
      const int64_t stream = number(10);
      if (stream >= kMostStreams) no_line(line_);
      result.stream = static_cast<StreamId>(stream);
    }
    if (!cursor_.accept("p")) return;
    const auto first = cursor_.number<uint64_t>();
    if (!first || !cursor_.accept(".")) no_line(line_);
    result.pool = {*first, static_cast<uint64_t>(number(10))};
  }
  void word(std::string_view word) {
    if (!cursor_.accept(word)) no_line(line_);
  }
  void end() const {
    if (!cursor_.at_end()) no_line(line_);
  }

 private:
  // A number, and the blank before the next field.
  int64_t number(int base) {
    const auto number = cursor_.number(base);
    if (!number || *number < 0) no_line(line_);
    if (!cursor_.at_end() && (!cursor_.accept(" ") || cursor_.at_end())) no_line(line_);
    return *number;
  }

  std::string_view line_;
  TextCursor cursor_;
  int base_;
};

// A node's name follows "evaluate"; the inputs of an operator follow its name.
void read_begin(std::string_view text, LogLine& line) {
  TextCursor cursor(text);
  line.name = text.starts_with("evaluate ") ? text : cursor.part(' ');
  line.text = text.starts_with("evaluate ") ? std::string_view() : cursor.rest();
}

void read_memory(char sign, std::string_view text, int base, LogLine& line) {
  using Kind = LogLine::Kind;
  Fields fields(text, base);
  switch (sign) {
    case '-': line.kind = Kind::give_back; break;
    case 'c': line.kind = Kind::completed; break;
    case '+': line.kind = Kind::request; break;
    case '!': line.kind = Kind::out_of_memory; break;
    case 'S': line.kind = Kind::segment, line.segment = SegmentEvent::Kind::allocate; break;
    case 'R': line.kind = Kind::segment, line.segment = SegmentEvent::Kind::free; break;
    case 'M': line.kind = Kind::segment, line.segment = SegmentEvent::Kind::map; break;
    case 'U': line.kind = Kind::segment, line.segment = SegmentEvent::Kind::unmap; break;
    default: no_line(text);
  }
  if (line.kind == Kind::out_of_memory)
    fields.word("oom ");
  else
    fields.block(line);
  if (line.kind != Kind::give_back && line.kind != Kind::completed) fields.bytes(line);
  if (line.kind == Kind::request || line.kind == Kind::segment) fields.place(line);
  fields.end();
}

}  // namespace

LogLine LogReader::read(std::string_view line, int64_t number) {
  LogLine result{.depth = depth_, .number = number};
  if (line.empty()) fail("empty line");
  const char sign = line[0];
  if (sign == '<') {
    if (depth_ == 0) fail("an operator ends that has not begun");
    result.kind = LogLine::Kind::end;
    result.depth = --depth_;
    result.text = line.substr(std::min<size_t>(2, line.size()));
    return result;
  }
  if (line.size() < 2 || line[1] != ' ') no_line(line);
  const std::string_view rest = line.substr(2);
  if (sign == '>') {
    result.kind = LogLine::Kind::begin;
    read_begin(rest, result);
    ++depth_;
  } else if (sign == '#' || sign == '=') {
    result.kind = sign == '#' ? LogLine::Kind::mark : LogLine::Kind::title;
    result.text = rest;
  } else {
    read_memory(sign, line, base_, result);
  }
  return result;
}

std::string AtWork::text() const {
  return names_.empty() ? "" : fmt::format(" in {}", fmt::join(names_, " > "));
}

}  // namespace metaprof
