#include "validation/recordings/recorded_value.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof {
namespace {

constexpr int kDeepest = 16;

int64_t parse_integer(std::string_view text) {
  const auto number = whole_number(text);
  if (!number) fail("'{}' is not an integer", text);
  return *number;
}

// "8,512,768"
Sizes parse_sizes(std::string_view text) {
  Sizes sizes;
  for (TextCursor cursor(text); !cursor.at_end();) sizes.push_back(parse_integer(cursor.part(',')));
  return sizes;
}

// What stands behind the sizes of a strided tensor: /STRIDES +OFFSET g @STORAGE
void parse_rest(RecordedTensor& tensor, TextCursor rest, std::string_view whole, Storages storages) {
  if (rest.accept("/")) {
    tensor.strides = parse_sizes(rest.until("+g@"));
    if (tensor.strides.size() != tensor.sizes.size()) fail("'{}' has not as many strides as sizes", whole);
  } else {
    tensor.strides = contiguous_strides(tensor.sizes);
  }
  if (rest.accept("+")) tensor.offset = parse_integer(rest.until("g@"));
  tensor.requires_grad = rest.accept("g");
  if (rest.at_end() && storages == Storages::optional) return;
  if (!rest.accept("@")) fail("'{}' is a tensor without @STORAGE", whole);
  tensor.on_host = rest.accept("h");
  tensor.storage = parse_integer(rest.rest());
}

// sparse(INDICES VALUES), and in examples csr(ROWS COLUMNS VALUES)
void parse_sparse(RecordedTensor& tensor, std::string_view rest, std::string_view whole, Storages storages) {
  const size_t open = rest.find('('), close = rest.rfind(')');
  tensor.layout = rest.substr(0, open);
  if (close == rest.npos || close < open) fail("'{}' is not a sparse tensor", whole);
  std::string_view parts = rest.substr(open + 1, close - open - 1);
  while (!parts.empty()) {
    const size_t space = std::min(parts.find(' '), parts.size());
    auto parsed = parse_tensor(parts.substr(0, space), storages);
    if (!parsed || !parsed->layout.empty()) fail("'{}' is not a sparse tensor", whole);
    tensor.parts.push_back(std::move(*parsed));
    parts.remove_prefix(std::min(space + 1, parts.size()));
  }
  if (tensor.parts.size() != (tensor.layout == "csr" ? 3 : 2)) fail("'{}' is not a sparse tensor", whole);
  tensor.on_host = tensor.parts[0].on_host;
  tensor.requires_grad = tensor.parts.back().requires_grad;
}

class Parser {
 public:
  Parser(std::string_view text, Storages storages) : text_(text), storages_(storages) {}

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

  RecordedValue read_word(std::string_view word) const {
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
    if (auto tensor = parse_tensor(word, storages_)) {
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
  Storages storages_;
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

std::optional<RecordedTensor> parse_tensor(std::string_view text, Storages storages) {
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
  } else if (rest.starts_with("sparse(") || rest.starts_with("csr(")) {
    parse_sparse(tensor, rest, text, storages);
  } else if (rest.empty() || std::string_view("/+g@").find(rest[0]) != std::string_view::npos) {
    parse_rest(tensor, TextCursor(rest), text, storages);
  } else {
    tensor.layout = rest;
  }
  return tensor;
}

std::vector<RecordedValue> parse_values(std::string_view text, Storages storages) {
  return Parser(text, storages).all();
}

}  // namespace metaprof
