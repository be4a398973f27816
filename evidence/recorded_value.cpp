#include "evidence/recorded_value.h"

#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr int kDeepest = 16;

int64_t parse_integer(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) fail("'{}' is not an integer", text);
  return number;
}

// "8,512,768"
Sizes parse_sizes(std::string_view text) {
  Sizes sizes;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    sizes.push_back(parse_integer(text.substr(0, comma)));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return sizes;
}

std::string_view take_until(std::string_view& text, std::string_view stops) {
  const size_t stop = std::min(text.find_first_of(stops), text.size());
  const std::string_view taken = text.substr(0, stop);
  text.remove_prefix(stop);
  return taken;
}

// What stands behind the sizes of a strided tensor: /STRIDES +OFFSET g @STORAGE
void parse_rest(RecordedTensor& tensor, std::string_view rest, std::string_view whole) {
  if (!rest.empty() && rest[0] == '/') {
    rest.remove_prefix(1);
    tensor.strides = parse_sizes(take_until(rest, "+g@"));
    if (tensor.strides.size() != tensor.sizes.size()) fail("'{}' has not as many strides as sizes", whole);
  } else {
    tensor.strides = contiguous_strides(tensor.sizes);
  }
  if (!rest.empty() && rest[0] == '+') {
    rest.remove_prefix(1);
    tensor.offset = parse_integer(take_until(rest, "g@"));
  }
  if (!rest.empty() && rest[0] == 'g') {
    tensor.requires_grad = true;
    rest.remove_prefix(1);
  }
  if (rest.empty() || rest[0] != '@') fail("'{}' is a tensor without @STORAGE", whole);
  rest.remove_prefix(1);
  if (!rest.empty() && rest[0] == 'h') {
    tensor.on_host = true;
    rest.remove_prefix(1);
  }
  tensor.storage = parse_integer(rest);
}

// sparse(INDICES VALUES)
void parse_sparse(RecordedTensor& tensor, std::string_view rest, std::string_view whole) {
  tensor.layout = "sparse";
  rest.remove_prefix(std::string_view("sparse(").size());
  const size_t close = rest.rfind(')'), space = rest.find(' ');
  if (close == rest.npos || space == rest.npos || space > close) fail("'{}' is not a sparse tensor", whole);
  for (std::string_view part : {rest.substr(0, space), rest.substr(space + 1, close - space - 1)}) {
    auto parsed = parse_tensor(part);
    if (!parsed || !parsed->layout.empty()) fail("'{}' is not a sparse tensor", whole);
    tensor.parts.push_back(std::move(*parsed));
  }
  tensor.on_host = tensor.parts[0].on_host;
  tensor.requires_grad = tensor.parts[1].requires_grad;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<RecordedValue> all() {
    std::vector<RecordedValue> values = list(0);
    if (at_ < text_.size()) fail("a ')' without '('");
    return values;
  }

 private:
  // Values until a ')' or the end.
  std::vector<RecordedValue> list(int depth) {
    if (depth > kDeepest) fail("lists are nested more than {} deep", kDeepest);
    std::vector<RecordedValue> values;
    for (;;) {
      while (at_ < text_.size() && text_[at_] == ' ') ++at_;
      if (at_ == text_.size() || text_[at_] == ')') return values;
      values.push_back(value(depth));
    }
  }

  RecordedValue value(int depth) {
    RecordedValue value;
    if (text_[at_] == '(') {
      ++at_;
      value.kind = RecordedValue::Kind::list;
      value.list = list(depth + 1);
      if (at_ == text_.size()) fail("a '(' without ')'");
      ++at_;
      return value;
    }
    if (text_[at_] == '"') return quoted();
    return word();
  }

  // Quotes inside the text are not escaped: the text ends at a quote before a space, a ')' or the end.
  RecordedValue quoted() {
    size_t close = at_ + 1;
    for (;; ++close) {
      close = text_.find('"', close);
      if (close == text_.npos) fail("a '\"' without another");
      if (close + 1 == text_.size() || text_[close + 1] == ' ' || text_[close + 1] == ')') break;
    }
    RecordedValue value;
    value.kind = RecordedValue::Kind::text;
    value.text = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return value;
  }

  RecordedValue word() {
    const size_t begin = at_;
    int open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(') ++open;
      if (c == ')' && open-- == 0) break;
      if (c == ' ' && open == 0) break;
    }
    return read_word(text_.substr(begin, at_ - begin));
  }

  static RecordedValue read_word(std::string_view word) {
    using Kind = RecordedValue::Kind;
    RecordedValue value;
    if (word == "None") return value;
    if (word == "True" || word == "False") {
      value.kind = Kind::boolean;
      value.integer = word == "True";
      return value;
    }
    if (word == "generator") {
      value.kind = Kind::generator;
      return value;
    }
    if (word == "cpu" || word.starts_with("cuda")) {
      value.kind = Kind::device;
      value.text = word;
      return value;
    }
    if (auto tensor = parse_tensor(word)) {
      value.kind = Kind::tensor;
      value.tensor.push_back(std::move(*tensor));
      return value;
    }
    if (number(word, value)) return value;
    value.kind = Kind::other;
    value.text = word;
    return value;
  }

  static bool number(std::string_view word, RecordedValue& value) {
    using Kind = RecordedValue::Kind;
    const std::string text(word);
    char* end = nullptr;
    if (word.find_first_of(".einfa") == word.npos) {
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value.integer);
      value.kind = Kind::integer;
      return error == std::errc() && stop == word.data() + word.size();
    }
    value.real = std::strtod(text.c_str(), &end);
    if (end == text.c_str()) return false;
    value.kind = Kind::real;
    if (*end == '\0') return true;
    if (*end != '+') return false;
    const char* second = end + 1;
    value.imaginary = std::strtod(second, &end);
    value.kind = Kind::complex;
    return end != second && std::string_view(end) == "j";
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

// Types that recordings name as C++ does.
std::optional<DType> recorded_dtype(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"ComplexHalf", DType::c32},
      {"Float8_e5m2", DType::f8_e5m2},
      {"Float8_e4m3fn", DType::f8_e4m3fn},
      {"Float8_e5m2fnuz", DType::f8_e5m2fnuz},
      {"Float8_e4m3fnuz", DType::f8_e4m3fnuz},
  };
  for (const auto& [spelled, dtype] : kNames)
    if (spelled == name) return dtype;
  return dtype_named(name);
}

std::optional<RecordedTensor> parse_tensor(std::string_view text) {
  const size_t open = text.find('[');
  if (open == text.npos) return {};
  const size_t close = text.find(']', open);
  if (close == text.npos) return {};
  const auto dtype = recorded_dtype(text.substr(0, open));
  RecordedTensor tensor;
  if (dtype) tensor.dtype = *dtype;
  tensor.sizes = parse_sizes(text.substr(open + 1, close - open - 1));
  tensor.strides = contiguous_strides(tensor.sizes);
  const std::string_view rest = text.substr(close + 1);
  if (!dtype) {
    tensor.layout = text.substr(0, open);
  } else if (rest.starts_with("sparse(")) {
    parse_sparse(tensor, rest, text);
  } else if (!rest.empty() && (rest[0] == '/' || rest[0] == '+' || rest[0] == 'g' || rest[0] == '@')) {
    parse_rest(tensor, rest, text);
  } else {
    tensor.layout = rest;
    if (tensor.layout.empty()) fail("'{}' is a tensor without @STORAGE", text);
  }
  return tensor;
}

std::vector<RecordedValue> parse_values(std::string_view text) { return Parser(text).all(); }

}  // namespace metaprof
