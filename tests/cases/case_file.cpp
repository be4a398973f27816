#include "tests/cases/case_file.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/error.h"
#include "program/def_use.h"
#include "program/text/text.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

// Words of a line: names, numbers, and the signs ( ) [ ] , = | by themselves. A shape is a part of its word.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (c == ' ') {
      ++i;
    } else if (c == '#') {
      break;
    } else if (std::string("()[],=|").find(c) != std::string::npos) {
      words.emplace_back(1, c);
      ++i;
    } else {
      const size_t begin = i;
      while (i < line.size() && std::string("()[],=| ").find(line[i]) == std::string::npos) ++i;
      words.push_back(line.substr(begin, i - begin));
    }
  }
  return words;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  std::vector<TextCase> read() {
    std::istringstream text(read_file(file_));
    for (std::string line; std::getline(text, line);) {
      ++number_;
      if (in_text_) {
        text_line(line);
        continue;
      }
      words_ = words_of(line);
      at_ = 0;
      if (!words_.empty()) statement();
    }
    finish();
    return std::move(cases_);
  }

 private:
  TextCase& now() { return cases_.back(); }
  Graph& graph() { return now().program.graph; }

  [[noreturn]] void wrong(const std::string& what) const { fail("{}:{}: {}", file_, number_, what); }
  bool next_is(const std::string& word) const { return at_ < words_.size() && words_[at_] == word; }
  std::string take() {
    if (at_ >= words_.size()) wrong("the line ends too early");
    return words_[at_++];
  }
  void take(const std::string& word) {
    if (take() != word) wrong("expected '" + word + "' before '" + words_[at_ - 1] + "'");
  }

  void statement() {
    const std::string first = words_[0];
    if (first == "=") {
      finish();
      cases_.emplace_back().file = file_;
      now().name = words_.at(1);
      now().program.name = now().name;
      now().program.origin = file_ + " " + now().name;
      now().options.optimizer = "none";
      now().options.steps = 1;
      values_.clear();
      return;
    }
    if (cases_.empty()) wrong("expected '= NAME' first");
    at_ = 1;
    if (first == "device")
      now().device = take();
    else if (first == "granularity")
      now().granularity = take();
    else if (first == "recorded")
      now().recorded = take();
    else if (first == "precision")
      now().options.precision = precision_named(take());
    else if (first == "mode")
      now().options.mode = mode_named(take());
    else if (first == "checkpoint")
      now().options.checkpoint = take();
    else if (first == "parameter")
      state(ProgramInput::Kind::parameter, true);
    else if (first == "frozen")
      state(ProgramInput::Kind::parameter, false);
    else if (first == "buffer")
      state(ProgramInput::Kind::buffer, false);
    else if (first == "input")
      state(ProgramInput::Kind::user, false);
    else if (first == "program")
      begin_text();
    else if (first == "return")
      returns();
    else if (first == "expect")
      expect();
    else
      call();
  }

  // The program's own text (docs/reference/program.md), up to a line "end".
  void begin_text() {
    in_text_ = true;
    text_ =
        std::string(size_t(number_) - 1, '\n') + "metaprof program 1\n";  // so that messages name the line
  }
  void text_line(const std::string& line) {
    if (line != "end") {
      text_ += line + "\n";
      return;
    }
    in_text_ = false;
    now().program = parse_program(text_, file_);
    now().program.name = now().name;
  }

  ValueId value(const std::string& name) {
    graph().values.emplace_back().name = name;
    const auto id = static_cast<ValueId>(graph().values.size() - 1);
    values_[name] = id;
    return id;
  }

  std::string joined_rest() {
    std::string rest;
    while (at_ < words_.size()) rest += take();
    return rest;
  }

  // "f32[2,3]"
  TensorFacts shape() {
    const std::string text = joined_rest();
    const size_t bracket = text.find('[');
    if (bracket == std::string::npos) wrong("expected a shape as f32[2,3]");
    TensorFacts facts;
    const std::optional<DType> dtype = dtype_named(text.substr(0, bracket));
    if (!dtype) wrong("no such dtype in " + text);
    facts.dtype = *dtype;
    std::istringstream sizes(text.substr(bracket + 1));
    for (int64_t size = 0; sizes >> size; sizes.ignore()) facts.sizes.push_back(size);
    facts.strides = contiguous_strides(facts.sizes);
    return facts;
  }

  void state(ProgramInput::Kind kind, bool trainable) {
    const std::string name = take();
    const ValueId id = value(name);
    graph().values[size_t(id)].tensor = shape();
    graph().values[size_t(id)].tensor->requires_grad = trainable;
    graph().inputs.push_back(id);
    ProgramInput& input = now().program.inputs.emplace_back();
    input.kind = kind;
    input.value = id;
    input.name = name;
    const size_t dot = name.rfind('.');
    if (kind != ProgramInput::Kind::user) modules_of(dot == std::string::npos ? "" : name.substr(0, dot));
  }

  void add_module(const std::string& path) {
    auto& modules = now().program.modules;
    for (const std::string& known : modules)
      if (known == path) return;
    modules.push_back(path);
  }

  // The stack of modules around a call; "relu@2" is another call of "relu".
  std::vector<ModuleCall> modules_of(const std::string& key) {
    std::vector<ModuleCall> stack{{.path = "", .type = "Model", .key = ""}};
    add_module("");
    for (size_t dot = 0; dot != std::string::npos && !key.empty();) {
      dot = key.find('.', dot + 1);
      const std::string prefix = key.substr(0, dot);
      const std::string path = prefix.substr(0, prefix.find('@'));
      stack.push_back({.path = path, .type = "Module", .key = prefix});
      add_module(path);
    }
    return stack;
  }

  // conv | y = conv2d(x, conv.weight, None, [1, 1])
  void call() {
    at_ = 0;
    GraphNode node;
    std::string module;
    if (words_.size() > 1 && words_[1] == "|") {
      module = take();
      take("|");
    }
    now().program.module_stacks.push_back(modules_of(module));
    node.modules = static_cast<int32_t>(now().program.module_stacks.size()) - 1;
    const std::vector<std::vector<std::string>> targets = target_names();
    take("=");
    const std::string op = take();
    node.op = op.find("::") == std::string::npos ? "aten::" + op : op;
    take("(");
    while (!next_is(")")) {
      node.operands.push_back(operand());
      if (!next_is(")")) take(",");
    }
    take(")");
    for (const auto& names : targets) {
      const bool list = names.size() > 1 && names[0] == "[";
      Target target{.list = list, .values = {}};
      for (size_t i = list ? 1 : 0; i < names.size(); ++i)
        target.values.push_back(names[i] == "_" ? kNoValue : value(names[i]));
      node.targets.push_back(std::move(target));
    }
    graph().nodes.push_back(std::move(node));
  }

  // "a", "a, b" or "[a, b]": one result, several results, one result that is a list.
  std::vector<std::vector<std::string>> target_names() {
    std::vector<std::vector<std::string>> targets;
    if (next_is("[")) {
      auto& list = targets.emplace_back();
      while (!next_is("]")) {
        const std::string word = take();
        if (word != ",") list.push_back(word);
      }
      take("]");
      return targets;
    }
    while (!next_is("=")) {
      targets.push_back({take()});
      if (next_is(",")) take();
    }
    return targets;
  }

  Operand operand() {
    Operand operand;
    if (at_ + 1 < words_.size() && words_[at_ + 1] == "=") {
      operand.name = take();
      take("=");
    }
    if (next_is("[")) return list(std::move(operand));
    const std::string word = take();
    if (const auto found = values_.find(word); found != values_.end()) {
      operand.kind = Operand::Kind::value;
      operand.value = found->second;
    } else {
      operand.constant = constant(word);
    }
    return operand;
  }

  Operand list(Operand operand) {
    take("[");
    Sizes integers;
    while (!next_is("]")) {
      const std::string word = take();
      if (word == ",") continue;
      if (const auto found = values_.find(word); found != values_.end()) {
        operand.values.push_back(found->second);
      } else {
        integers.push_back(constant(word).integer());
      }
    }
    take("]");
    if (operand.values.empty()) {
      operand.constant = Value(integers);
    } else {
      operand.kind = Operand::Kind::values;
    }
    return operand;
  }

  Value constant(const std::string& word) {
    if (word == "None") return {};
    if (word == "True" || word == "False") return Value(word == "True");
    if (const std::optional<DType> dtype = dtype_named(word)) return Value(*dtype);
    if (!std::isdigit(static_cast<unsigned char>(word.back())) && word.back() != '.')
      wrong("there is no value '" + word + "'");
    if (word.find('.') != std::string::npos) return Value(std::stod(word));
    return Value(int64_t{std::stoll(word)});
  }

  ValueId known(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) wrong("there is no value '" + name + "'");
    return found->second;
  }

  // return y [more]: the first is the loss
  void returns() {
    while (at_ < words_.size()) {
      Operand operand;
      operand.kind = Operand::Kind::value;
      operand.value = known(take());
      const bool loss = now().program.outputs.empty();
      ProgramOutput& output = now().program.outputs.emplace_back();
      output.kind = loss ? ProgramOutput::Kind::loss : ProgramOutput::Kind::user;
      output.operand = operand;
      graph().outputs.push_back(operand);
    }
  }

  // expect NAME figure=N …; NAME may have blanks: "model: add_.Tensor"
  void expect() {
    Expectation expectation{.node = "", .figures = {}, .line = number_};
    while (at_ + 1 < words_.size() && words_[at_ + 1] != "=")
      expectation.node += (expectation.node.empty() ? "" : " ") + take();
    while (at_ < words_.size()) {
      const std::string figure = take();
      take("=");
      int64_t sum = 0;
      for (std::istringstream terms(take()); terms.good() && terms.peek() != EOF;) {
        int64_t term = 0;
        terms >> term;
        sum += term;
        if (terms.peek() == '+') terms.ignore();
      }
      expectation.figures[figure] = sum;
    }
    now().expectations.push_back(std::move(expectation));
  }

  void finish() {
    if (cases_.empty()) return;
    if (in_text_) wrong("the program of the case before has no 'end'");
    if (now().expectations.empty()) wrong("the case before expects nothing");
    const bool has_drops =
        std::ranges::any_of(graph().nodes, [](const GraphNode& n) { return !n.drops.empty(); });
    if (!has_drops) drop_after_last_use(graph());
  }

  const std::string file_;
  int number_ = 0;
  std::vector<std::string> words_;
  size_t at_ = 0;
  bool in_text_ = false;
  std::string text_;
  std::map<std::string, ValueId> values_;
  std::vector<TextCase> cases_;
};

}  // namespace

std::vector<TextCase> read_cases(const std::string& file) { return Reader(file).read(); }

}  // namespace metaprof
