#include "estimate/explain/out_of_memory_message.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>

#include "core/error.h"
#include "core/shown_text.h"

namespace metaprof {
namespace {

constexpr std::string_view kBegin = "Tried to allocate ";
// A message has some 700 characters, and 60 more for each other process. Regular expressions of the library recurse.
constexpr size_t kMostCharacters = 6000;
constexpr size_t kMostShown = 100;

// Without the ends of lines that a terminal or a chat has put into it; '#', '>' and '|' quote.
std::string on_one_line(std::string_view text) {
  std::string out;
  bool line_begins = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r') line_begins = true;
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (is_blank || (line_begins && (c == '#' || c == '>' || c == '|'))) {
      if (!out.empty() && out.back() != ' ') out += ' ';
      continue;
    }
    line_begins = false;
    out += c;
  }
  return out;
}

Bytes bytes_of(const std::string& number, const std::string& unit) {
  double value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [name, power] : kUnits)
    if (unit == name) value = std::ldexp(value, power);
  if (value > std::ldexp(1.0, 60)) fail("the message has {} {}: no device has so much", number, unit);
  return {std::llround(value)};
}

const std::string kAmount = R"(([0-9]+(?:\.[0-9]+)?) (bytes|[KMGT]iB))";

// The amount in the first place that has this pattern, whose groups are those of kAmount alone.
std::optional<Bytes> amount(const std::string& text, const std::string& before, const std::string& after) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(before + kAmount + after))) return std::nullopt;
  return bytes_of(found[1], found[2]);
}

Bytes needed(const std::string& text, const std::string& before, const std::string& after) {
  if (const std::optional<Bytes> found = amount(text, before, after)) return *found;
  fail("'{}' is no whole message of PyTorch: it must go on to the memory that is reserved",
       shown(text, kMostShown));
}

int gpu_of(const std::string& text) {
  std::smatch found;
  return std::regex_search(text, found, std::regex("GPU ([0-9]{1,4})")) ? std::stoi(found[1]) : 0;
}

// "Tried to allocate 2.00 GiB (GPU 0; 79.35 GiB total capacity; 75.12 GiB already allocated; 1.10 GiB free; 76.80 GiB
// reserved in total by PyTorch)"
OutOfMemoryMessage read_brackets(const std::string& text) {
  OutOfMemoryMessage message;
  message.before_2_1 = true;
  message.capacity = needed(text, "", " total capacity");
  message.allocated = needed(text, "", " already allocated");
  message.free = needed(text, "", " free");
  message.allowed = amount(text, "", " allowed");
  message.cached =
      std::max(Bytes(), needed(text, "", " (?:reserved|cached)") - message.allocated);  // rounded numbers
  return message;
}

void read_processes(const std::string& text, OutOfMemoryMessage& message) {
  message.this_process = amount(text, "this process has ", " memory in use");
  const std::regex kProcess("Process ([0-9]{1,18}) has " + kAmount + " memory in use");
  for (std::sregex_iterator found(text.begin(), text.end(), kProcess), end; found != end; ++found)
    message.others.push_back({std::stoll((*found)[1]), bytes_of((*found)[2], (*found)[3])});
  if (message.this_process) return;
  // In a container this process is one of those that are listed: the least that has all that was reserved. A hundredth
  // of it: numbers are rounded.
  const double reserved = 0.99 * static_cast<double>(message.reserved().count);
  auto own = message.others.end();
  for (auto it = message.others.begin(); it != message.others.end(); ++it)
    if (static_cast<double>(it->bytes.count) >= reserved &&
        (own == message.others.end() || it->bytes < own->bytes))
      own = it;
  if (own == message.others.end()) return;
  message.this_process = own->bytes;
  message.others.erase(own);
}

// "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.35 GiB of which 1.10 GiB is free. …"; 2.1 wrote "capacty".
OutOfMemoryMessage read_sentences(const std::string& text) {
  OutOfMemoryMessage message;
  message.capacity = needed(text, "total capaci?ty of ", "");
  message.free = needed(text, "of which ", " is free");
  message.allowed = amount(text, "", " allowed;");
  message.allocated = needed(text, "Of the allocated memory ", " is allocated by PyTorch");
  message.in_private_pools = amount(text, "with ", " allocated in private pools").value_or(Bytes());
  message.cached = needed(text, "and ", " is reserved by PyTorch but unallocated");
  read_processes(text, message);
  return message;
}

OutOfMemoryMessage read_message(std::string_view pasted) {
  const std::string text = on_one_line(pasted);
  std::smatch found;
  const bool brackets = std::regex_search(text, found, std::regex(" ?\\(GPU [0-9]+;"));
  OutOfMemoryMessage message = brackets ? read_brackets(text) : read_sentences(text);
  message.asked = needed(text, "Tried to allocate ", "");
  message.gpu = gpu_of(text);
  return message;
}

}  // namespace

std::optional<OutOfMemoryMessages> read_out_of_memory_messages(std::string_view text) {
  OutOfMemoryMessages messages;
  size_t last = text.npos;
  for (size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at + 1)) {
    last = at;
    ++messages.count;
  }
  if (messages.count == 0) return std::nullopt;
  messages.last = read_message(text.substr(last, kMostCharacters));
  return messages;
}

}  // namespace metaprof
