#include "step/compiled/ir/text_cursor.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof::ir {
namespace {

constexpr size_t kMostDimensions = 64;

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_.:/-+").find(c) != std::string_view::npos;
}

}  // namespace

void GraphText::wrong(std::string_view what) const { fail("line {}: {}", line_, what); }

void GraphText::skip_blanks() {
  while (!at_end()) {
    if (text_[at_] == '#') {
      while (!at_end() && text_[at_] != '\n') ++at_;
    } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      line_ += text_[at_++] == '\n';
    } else {
      return;
    }
  }
}

bool GraphText::accept(std::string_view sign) {
  if (!next_is(sign)) return false;
  at_ += sign.size();
  skip_blanks();
  return true;
}

void GraphText::take(std::string_view sign) {
  if (!accept(sign))
    wrong("expected '" + std::string(sign) + "' before '" + std::string(text_.substr(at_, 20)) + "'");
}

std::string_view GraphText::peek_word() const {
  size_t end = at_;
  while (end < text_.size() && is_of_word(text_[end])) {
    if (text_.substr(end).starts_with("->")) break;
    ++end;
  }
  return text_.substr(at_, end - at_);
}

std::string_view GraphText::word() {
  const std::string_view word = peek_word();
  at_ += word.size();
  skip_blanks();
  return word;
}

std::string GraphText::value_name() {
  if (!next_is("%")) wrong("a value as %x is expected before '" + std::string(text_.substr(at_, 20)) + "'");
  ++at_;
  size_t end = at_;
  while (end < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' || text_[end] == '.'))
    ++end;
  if (end == at_) wrong("a value needs a name behind its %");
  std::string name(text_.substr(at_, end - at_));
  at_ = end;
  skip_blanks();
  return name;
}

std::string GraphText::quoted() {
  std::string text;
  for (++at_; !at_end() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\n') break;
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    text += text_[at_];
  }
  if (at_end() || text_[at_] != '"') wrong("a text without closing quotes");
  ++at_;
  skip_blanks();
  return text;
}

Constant GraphText::number(std::string_view word) {
  if (const auto integer = whole_number(word)) return Constant(*integer);
  double real = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), real);
  if (error != std::errc() || end != word.data() + word.size())
    wrong("'" + std::string(word) + "' is no constant");
  return Constant(real);
}

Constant GraphText::constant() {
  if (next_is("\"")) return Constant(quoted());
  if (next_is("[")) return list();
  const std::string_view word = this->word();
  if (word == "None") return Constant();
  if (word == "True" || word == "False") return Constant(word == "True");
  if (word == "generator") return Constant::generator();
  if (word == "reals" || word == "booleans" || word == "ints") {
    take("[");
    take("]");
    if (word == "reals") return Constant(Constant::Reals());
    if (word == "booleans") return Constant(Constant::Booleans());
    return Constant(Sizes());
  }
  if (word == "device") {
    take("(");
    const std::string_view name = this->word();
    take(")");
    if (name == "cpu") return Constant(kHost);
    if (name == "model") return Constant(Device{DeviceType::cuda, -1});
    if (name.starts_with("cuda")) {
      const auto index = name.size() > 5 ? whole_number<int8_t>(name.substr(5)) : int8_t{0};
      if (index && *index >= 0) return Constant(Device{DeviceType::cuda, *index});
    }
    wrong("no device is called '" + std::string(name) + "'");
  }
  if (const auto dtype = dtype_named(word)) return Constant(*dtype);
  return number(word);
}

Constant GraphText::list() {
  take("[");
  std::vector<Constant> elements;
  while (!accept("]")) {
    if (!elements.empty()) take(",");
    elements.push_back(constant());
  }
  const auto all = [&](Constant::Kind kind) {
    return std::ranges::all_of(elements, [&](const Constant& one) { return one.kind() == kind; });
  };
  if (all(Constant::Kind::integer)) {
    Sizes integers;
    for (const Constant& one : elements) integers.push_back(one.integer());
    return Constant(integers);
  }
  if (all(Constant::Kind::boolean)) {
    Constant::Booleans booleans;
    for (const Constant& one : elements) booleans.push_back(one.boolean());
    return Constant(std::move(booleans));
  }
  Constant::Reals reals;
  for (const Constant& one : elements) {
    if (!one.is_number()) wrong("a list of constants holds numbers of one kind");
    reals.push_back(one.real());
  }
  return Constant(std::move(reals));
}

int64_t GraphText::integer() {
  const std::string_view text = word();
  const auto number = whole_number(text);
  if (!number) wrong("'" + std::string(text) + "' is no integer");
  return *number;
}

void GraphText::sizes(TensorDetail& detail) {
  take("[");
  while (!accept("]")) {
    if (!detail.sizes.empty()) take(",");
    if (detail.sizes.size() == kMostDimensions) wrong("a tensor has at most 64 dimensions");
    if (accept("*"))
      detail.sizes.emplace_back();
    else
      detail.sizes.emplace_back(integer());
  }
  detail.rank = static_cast<int>(detail.sizes.size());
  if (std::ranges::none_of(detail.sizes, [](const auto& size) { return size.has_value(); }))
    detail.sizes.clear();
  if (!accept("(")) return;
  detail.strides.emplace();
  while (!accept(")")) {
    if (!detail.strides->empty()) take(",");
    detail.strides->push_back(integer());
  }
}

TensorDetail GraphText::detail() {
  TensorDetail detail;
  while (!accept(")")) {
    if (accept("?")) {
      sizes(detail);
      continue;
    }
    const std::string_view word = this->word();
    if (word == "cpu" || word == "cuda") {
      detail.device = word == "cpu" ? DeviceType::cpu : DeviceType::cuda;
    } else if (word == "grad" || word == "no_grad") {
      detail.requires_grad = word == "grad";
    } else if (word == "defined" || word == "undefined") {
      detail.defined = word == "defined";
    } else if (const auto dtype = dtype_named(word)) {
      detail.dtype = *dtype;
      if (next_is("[")) sizes(detail);
    } else {
      wrong(
          "a tensor is described by its dtype and sizes, cpu or cuda, grad or no_grad, defined or undefined; "
          "not by '" +
          std::string(word) + "'");
    }
  }
  return detail;
}

bool GraphText::list_requires_grad() {
  const std::string_view word = this->word();
  if (word != "grad" && word != "no_grad")
    wrong("a list of tensors is described by grad or no_grad, not by '" + std::string(word) + "'");
  take(")");
  return word == "grad";
}

Type GraphText::type() {
  std::string word(this->word());
  if (next_is("[]")) {
    take("[]");
    word += "[]";
  }
  const auto kind = kind_named(word);
  if (!kind) wrong("no type is called '" + word + "'");
  Type type(*kind);
  if (type.is_tensor() && accept("(")) type.tensor = detail();
  if (type.is_tensors() && accept("(")) type.tensor.requires_grad = list_requires_grad();
  type.optional = accept("?");
  return type;
}

}  // namespace metaprof::ir
