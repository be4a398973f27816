#include "tests/autograd/case_language.h"

#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/engine/op_node.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "tests/autograd/live_bytes.h"

namespace metaprof {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (auto part = trim(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text = trim(text.substr(prefix.size()));
  return true;
}

// "4 * 6 + 8"
int64_t number_of(std::string_view text) {
  int64_t sum = 0;
  for (const std::string& term : split(text, '+')) {
    int64_t product = 1;
    for (const std::string& factor : split(term, '*')) {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(factor.data(), factor.data() + factor.size(), value);
      if (error != std::errc() || end != factor.data() + factor.size()) fail("no number: '{}'", text);
      product *= value;
    }
    sum += product;
  }
  return sum;
}

// "f32[2,3]"; nothing if the text is something else.
std::optional<std::pair<DType, Sizes>> tensor_type(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return {};
  const auto dtype = dtype_named(text.substr(0, open));
  if (!dtype) return {};
  Sizes sizes;
  for (const std::string& size : split(text.substr(open + 1, text.size() - open - 2), ','))
    sizes.push_back(number_of(size));
  return std::pair{*dtype, sizes};
}

class Program {
 public:
  void run(std::string_view statement) {
    if (take_prefix(statement, "no_grad:")) {
      Scoped<bool> no_grad(session_->modes.grad, false);
      return run(statement);
    }
    if (take_prefix(statement, "fails ")) return run_failing(statement);
    if (take_prefix(statement, "drop ")) {
      for (const std::string& name : split(statement, ' ')) EXPECT_EQ(variables_.erase(name), 1U) << name;
      return;
    }
    if (take_prefix(statement, "backward ")) return run_backward(statement);
    if (take_prefix(statement, "saved ")) return check_saved(statement);
    if (take_prefix(statement, "gradient ")) return check_gradient(statement);
    if (take_prefix(statement, "allocated ")) {
      EXPECT_EQ(live_bytes(*session_), number_of(statement)) << "allocated bytes";
      return;
    }
    assign(statement);
  }

 private:
  void run_failing(std::string_view statement) {
    const size_t end = statement.find('"', 1);
    const std::string_view wanted = statement.substr(1, end - 1);
    std::string_view rest = trim(statement.substr(end + 1));
    if (!take_prefix(rest, ":")) fail("expected a colon after the message");
    try {
      run(rest);
    } catch (const Error& error) {
      EXPECT_NE(std::string_view(error.what()).find(wanted), std::string_view::npos) << error.what();
      return;
    }
    ADD_FAILURE() << "is not refused";
  }

  void run_backward(std::string_view statement) {
    const std::vector<std::string> parts = split(statement, ',');
    const Tensor roots[] = {variable(parts[0]).tensor()};
    const Tensor ones[] = {call<"ones_like">(*session_, roots[0])};
    backward(*session_, roots, ones, {}, {.retain_graph = parts.size() > 1 && parts[1] == "keep graph"});
  }

  void check_saved(std::string_view statement) {
    const size_t colon = statement.find(':');
    if (colon == std::string_view::npos) {
      EXPECT_EQ(saved_bytes(*session_), number_of(statement)) << "saved bytes";
      return;
    }
    const Tensor tensor = variable(trim(statement.substr(0, colon))).tensor();
    std::vector<std::string> kept;
    if (const auto* node = dynamic_cast<const OpNode*>(grad_fn(tensor)))
      for (size_t i = 0; i < node->saved_count(); ++i)
        if (node->saved(i).defined() || !node->saved_list(i).empty())
          kept.emplace_back(node->name_of(node->saved(i)));
    if (kept.empty()) kept.emplace_back("nothing");
    EXPECT_EQ(kept, split(statement.substr(colon + 1), ' ')) << "what the node keeps";
  }

  void check_gradient(std::string_view statement) {
    const size_t colon = statement.find(':');
    const Tensor gradient = variable(trim(statement.substr(0, colon))).tensor().grad();
    EXPECT_EQ(gradient.defined() ? describe(gradient) : "none", trim(statement.substr(colon + 1)));
  }

  void assign(std::string_view statement) {
    const size_t equals = statement.find(" = ");
    if (equals == std::string_view::npos) {
      text_ = statement;
      expression();
      return;
    }
    const std::vector<std::string> names = split(statement.substr(0, equals), ',');
    text_ = trim(statement.substr(equals + 3));
    std::string_view type = text_;
    const bool leaf = type.ends_with(" grad");
    if (leaf) type = trim(type.substr(0, type.size() - 5));
    if (const auto made = tensor_type(type)) {
      Tensor tensor = session_->empty(made->second, made->first);
      tensor->requires_grad = leaf;
      variables_[names[0]] = Value(std::move(tensor));
      return;
    }
    std::vector<Value> results = expression();
    for (size_t i = 0; i < names.size(); ++i) variables_[names[i]] = results.at(i);
    if (!text_.empty()) fail("what is '{}'?", text_);
  }

  // --- Expressions: what is read is taken from the front of text_.
  char next() {
    text_ = trim(text_);
    return text_.empty() ? '\0' : text_.front();
  }
  void expect(char character) {
    if (next() != character) fail("expected '{}' before '{}'", character, text_);
    text_.remove_prefix(1);
  }
  std::string_view word() {
    size_t end = 0;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' ||
                                  text_[end] == '.' || text_[end] == '-'))
      ++end;
    const std::string_view taken = text_.substr(0, end);
    text_.remove_prefix(end);
    return taken;
  }

  std::vector<Value> expression() {
    const char first = next();
    if (first == '(') return {Value(integers())};
    if (first == '[') return {Value(tensors())};
    if (first == '"') {
      const size_t end = text_.find('"', 1);
      const Value text{std::string(text_.substr(1, end - 1))};
      text_.remove_prefix(end + 1);
      return {text};
    }
    const std::string_view name = word();
    if (next() == '(') return call_named(name);
    if (name == "None") return {Value()};
    if (name == "True" || name == "False") return {Value(name == "True")};
    if (std::isdigit(static_cast<unsigned char>(first)) || first == '-') return {number(name)};
    return {variable(name)};
  }

  static Value number(std::string_view text) {
    if (text.find('.') == std::string_view::npos) return Value(int64_t{std::stoll(std::string(text))});
    return Value(std::stod(std::string(text)));
  }

  Sizes integers() {
    Sizes list;
    expect('(');
    while (next() != ')') list.push_back(std::stoll(std::string(word())));
    expect(')');
    return list;
  }

  Value::Tensors tensors() {
    Value::Tensors list;
    expect('[');
    while (next() != ']') list.push_back(variable(word()).tensor());
    expect(']');
    return list;
  }

  std::vector<Value> call_named(std::string_view name) {
    expect('(');
    const Operator* op = name == "grad" ? nullptr : session_->registry.find("aten::" + std::string(name));
    if (!op && name != "grad") fail("there is no operator '{}'", name);
    std::vector<Value> given;
    while (next() != ')') {
      // name=value: those before it take their defaults.
      const size_t end = text_.find_first_of("=,()[");
      if (end != std::string_view::npos && text_[end] == '=') {
        const int index = op->schema.find(name_hash(trim(text_.substr(0, end))));
        if (index < 0) fail("{} has no argument '{}'", name, text_.substr(0, end));
        for (size_t i = given.size(); i < size_t(index); ++i)
          given.push_back(op->schema.arguments[i].default_value);
        text_.remove_prefix(end + 1);
      }
      given.push_back(expression().at(0));
      if (next() == ',') expect(',');
    }
    expect(')');
    if (!op) return gradients(given);
    Results results = invoke(*session_, *op, given);
    std::vector<Value> values;
    for (Value& value : results.list()) values.push_back(std::move(value));
    return values;
  }

  std::vector<Value> gradients(const std::vector<Value>& given) {
    const Tensor outputs[] = {given.at(0).tensor()};
    std::vector<Tensor> inputs;
    for (size_t i = 1; i < given.size(); ++i) inputs.push_back(given[i].tensor());
    const Tensor ones[] = {call<"ones_like">(*session_, outputs[0])};
    std::vector<Value> values;
    for (const Tensor& gradient : grad(*session_, outputs, inputs, ones, {.allow_unused = true}))
      values.emplace_back(gradient);
    return values;
  }

  const Value& variable(std::string_view name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) fail("there is no '{}'", name);
    return found->second;
  }

  std::unique_ptr<Session> session_ = make_session(platform_named("h200"));
  std::map<std::string, Value, std::less<>> variables_;
  std::string_view text_;
};

// A remark goes up to the end of the line.
std::string_view without_remark(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return trim(line.substr(0, i));
  }
  return trim(line);
}

}  // namespace

void run_case_file(const std::string& path) {
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::optional<Program> program;
  std::string line, title;
  int cases = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    std::string_view statement = without_remark(line);
    if (statement.empty()) continue;
    if (take_prefix(statement, "case ")) {
      program.emplace();
      title = statement;
      ++cases;
      continue;
    }
    const ::testing::ScopedTrace trace(path.c_str(), number, title + ": " + std::string(statement));
    ASSERT_TRUE(program) << "a statement before the first case";
    try {
      program->run(statement);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(cases, 0) << path;
}

}  // namespace metaprof
