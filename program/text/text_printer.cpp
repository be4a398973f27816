#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

#include "program/text/constant_text.h"
#include "program/text/text.h"
#include "program/text/text_words.h"

namespace metaprof {
namespace {

bool is_plain_value_name(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::ranges::all_of(name, is_of_value_name);
}

// Stacks as a tree, in which each entry stands once: its number follows from its own text and its parent's
// number.
class StackNumbers {
 public:
  struct Found {
    int number;
    bool is_new;
  };
  Found number_of(int parent, const std::string& entry) {
    const auto [found, is_new] = numbers_.try_emplace({parent, entry}, static_cast<int>(numbers_.size()) + 1);
    return {found->second, is_new};
  }

 private:
  std::map<std::pair<int, std::string>, int> numbers_;
};

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string print() {
    line("metaprof program {}", kProgramTextVersion);
    if (!program_.name.empty()) line("name {}", quoted_text(program_.name));
    if (!program_.training) line("evaluation");
    if (program_.captured) print_capture(*program_.captured);
    if (!program_.framework.empty()) line("framework {}", quoted_text(program_.framework));
    for (const std::string& warning : program_.warnings) line("warning {}", quoted_text(warning));
    for (const auto& [symbol, what] : program_.assumed) line("assumed {} {}", symbol, quoted_text(what));
    print_symbols();
    print_modules();
    name_values(program_.graph);
    for (const auto& input : program_.inputs) print_input(input);
    print_nodes(program_.graph);
    for (const ProgramOutput& output : program_.outputs) print_output(output);
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(indent_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void print_capture(const Capture& capture) {
    std::string where;
    if (!capture.device.empty()) where += " device " + word_text(capture.device);
    if (capture.memory != 0) where += fmt::format(" memory {}", capture.memory);
    if (!capture.alloc_conf.empty()) where += " alloc_conf " + quoted_text(capture.alloc_conf);
    if (capture.workspaces != "auto") where += " workspaces " + word_text(capture.workspaces);
    if (!capture.unfinished.empty()) where += " unfinished " + quoted_text(capture.unfinished);
    line("captured torch {}{}", word_text(capture.torch), where);
    for (const auto& [name, value] : capture.environment)
      line("environment {} {}", word_text(name), quoted_text(value));
    for (const Capture::Measured& measured : capture.measured) {
      std::string numbers;
      for (const auto member : kAllocatorNumbers)
        fmt::format_to(std::back_inserter(numbers), " {} {}", (measured.numbers.*member).current,
                       (measured.numbers.*member).peak);
      line("measured {} {} {}{}", word_text(measured.phase), measured.step, measured.micro, numbers);
      // Lines that a person can scroll, and that no reader refuses as too long.
      constexpr size_t kPerLine = 100;
      for (size_t i = 0; i < measured.requests.size(); i += kPerLine) {
        const auto begin = measured.requests.begin() + static_cast<std::ptrdiff_t>(i);
        const size_t count = std::min(kPerLine, measured.requests.size() - i);
        line("requests {}", fmt::join(begin, begin + static_cast<std::ptrdiff_t>(count), " "));
      }
    }
  }

  void print_symbols() {
    for (const auto& [name, value] : program_.symbols) {
      const auto range = program_.ranges.find(name);
      line("symbol {} = {}{}", word_text(name), value,
           range == program_.ranges.end() ? "" : range_text(range->second));
    }
    for (const auto& [name, range] : program_.ranges)
      if (!program_.symbols.contains(name)) line("range {}{}", word_text(name), range_text(range));
    for (size_t i = 0; i < program_.expressions.size(); ++i) {
      const SymbolicInteger& symbolic = program_.expressions[i];
      line("expression e{}{} = {}", i, symbolic.hint ? fmt::format(" hint {}", *symbolic.hint) : "",
           quoted_text(to_srepr(*symbolic.expression)));
    }
    for (const Resizing::Change& change : program_.resizing.changes)
      line("resized {} to {}", change.before, change.now);
  }

  static std::string range_text(const SymbolRange& range) {
    const auto bound = [](const std::optional<int64_t>& number) {
      return number ? std::to_string(*number) : std::string("any");
    };
    return " in " + bound(range.least) + " to " + bound(range.most);
  }

  void print_modules() {
    std::set<std::string_view> listed;
    for (const std::string& path : program_.modules) {
      const auto type = program_.module_types.find(path);
      line("module {}{}", word_text(path),
           type == program_.module_types.end() ? "" : " " + word_text(type->second));
      listed.insert(path);
    }
    for (const auto& [path, type] : program_.module_types)
      if (!listed.contains(path)) line("type {} {}", word_text(path), word_text(type));
  }

  // --- Values

  // Names of a graph's values: their own where they have one, which is the first of its kind, else their
  // numbers in the order in which they are made.
  void name_values(const Graph& graph) {
    auto& names = names_.emplace_back(graph.values.size());
    std::set<std::string_view> taken;
    int made = 0;
    const auto name = [&](ValueId value) {
      if (value == kNoValue) return;
      const std::string& own = graph.values[size_t(value)].name;
      std::string& shown = names[size_t(value)];
      if (shown.empty())
        shown = own.empty() || !taken.insert(own).second ? fmt::format("%{}", made)
                : is_plain_value_name(own)               ? "%" + own
                                                         : "%" + quoted_text(own);
      ++made;
    };
    for (const ValueId input : graph.inputs) name(input);
    for (const GraphNode& node : graph.nodes)
      for (const Target& target : node.targets)
        for (const ValueId value : target.values) name(value);
  }

  const std::string& name_of(ValueId value) const { return names_.back()[size_t(value)]; }

  std::string definition_of(const Graph& graph, ValueId value) const {
    if (value == kNoValue) return "_";
    const std::string facts = facts_text(graph.values[size_t(value)]);
    return name_of(value) + (facts.empty() ? "" : ": " + facts);
  }

  static std::string numbered(int64_t number, int32_t expression) {
    return expression < 0 ? std::to_string(number) : fmt::format("{}<e{}>", number, expression);
  }

  static std::string list_of(const Sizes& numbers, const std::vector<int32_t>& expressions) {
    std::string text;
    for (size_t i = 0; i < numbers.size(); ++i)
      text += (i ? "," : "") + numbered(numbers[i], i < expressions.size() ? expressions[i] : -1);
    return text;
  }

  static std::string tensor_text(const TensorFacts& tensor) {
    std::string text =
        fmt::format("{}[{}]", short_name(tensor.dtype), list_of(tensor.sizes, tensor.size_expressions));
    const bool symbolic_strides =
        std::ranges::any_of(tensor.stride_expressions, [](int32_t e) { return e >= 0; });
    if (symbolic_strides || tensor.strides != contiguous_strides(tensor.sizes))
      text += "(" + list_of(tensor.strides, tensor.stride_expressions) + ")";
    if (tensor.offset != 0 || tensor.offset_expression >= 0)
      text += " offset " + numbered(tensor.offset, tensor.offset_expression);
    if (tensor.device) text += " on " + to_string(*tensor.device);
    return text + (tensor.requires_grad ? " grad" : "");
  }

  static std::string facts_text(const ValueFacts& facts) {
    std::string text = facts.tensor ? tensor_text(*facts.tensor) : "";
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : " ") + more; };
    if (facts.number)
      add("int " + numbered(*facts.number, facts.number_expression));
    else if (facts.number_expression >= 0)
      add(fmt::format("int <e{}>", facts.number_expression));
    if (facts.real) add("real " + real_text(*facts.real));
    return text;
  }

  // --- Operands

  std::string operand_text(const Operand& operand) {
    const std::string value = operand_value(operand);
    return operand.name.empty() ? value : word_text(operand.name) + "=" + value;
  }

  std::string operand_value(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::value: return name_of(operand.value);
      case Operand::Kind::values: return value_list(operand);
      case Operand::Kind::integers: return integer_list(operand);
      case Operand::Kind::graph: return fmt::format("graph({})", graphs_.at(operand.graph.get()));
      case Operand::Kind::unknown: return "unknown(" + quoted_text(operand.text) + ")";
      case Operand::Kind::constant: break;
    }
    if (operand.name == "dtype" && operand.constant.kind() == Value::Kind::integer)
      if (const auto dtype = dtype_numbered(operand.constant.integer()))
        return std::string(short_name(*dtype));
    return constant_text(operand.constant);
  }

  std::string value_list(const Operand& operand) const {
    if (operand.values.empty()) return "tensors[]";
    std::string text = "[";
    for (const ValueId value : operand.values)
      text += (text.size() > 1 ? ", " : "") + (value == kNoValue ? "None" : name_of(value));
    return text + "]";
  }

  std::string integer_list(const Operand& operand) const {
    std::string text;
    for (size_t i = 0; i < operand.numbers.size(); ++i) {
      const bool is_value = i < operand.values.size() && operand.values[i] != kNoValue;
      text += (i ? ", " : "") + (is_value ? name_of(operand.values[i]) : std::to_string(operand.numbers[i]));
    }
    return "ints[" + text + "]";
  }

  // --- Nodes

  // " keep aten::mm(0, 2)"
  static std::string kept_text(const CheckpointRegion& checkpoint) {
    std::string text;
    for (const KeptCalls& calls : checkpoint.kept)
      text += fmt::format("{}{}({})", text.empty() ? " keep " : " ", word_text(calls.op),
                          fmt::join(calls.which, ", "));
    return text;
  }

  void print_nodes(const Graph& graph) {
    auto checkpoint = graph.checkpoints.begin();
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (checkpoint != graph.checkpoints.end() && checkpoint->begin == i) {
        line("checkpoint{}{}{} {{", checkpoint->reentrant ? " reentrant" : "",
             checkpoint->whole ? " whole" : "", kept_text(*checkpoint));
        indent_ += 2;
      }
      print_node(graph, graph.nodes[i]);
      if (checkpoint != graph.checkpoints.end() && checkpoint->end == i + 1) {
        indent_ -= 2;
        line("}}");
        ++checkpoint;
      }
    }
  }

  void print_node(const Graph& graph, const GraphNode& node) {
    const int scope = print_scope(node.modules), stack = print_stack(node.source);
    for (const Operand& operand : node.operands)
      if (operand.graph && !graphs_.contains(operand.graph.get())) print_graph(*operand.graph);
    std::string text;
    for (const Target& target : node.targets) text += (text.empty() ? "" : ", ") + target_text(graph, target);
    if (!text.empty()) text += " = ";
    text += word_text(node.op) + "(";
    for (size_t i = 0; i < node.operands.size(); ++i)
      text += (i ? ", " : "") + operand_text(node.operands[i]);
    text += ")";
    if (scope) text += fmt::format(" in m{}", scope);
    if (stack) text += fmt::format(" at s{}", stack);
    if (node.dtype_named) text += " dtype_named";
    if (node.dtype_of != kNoValue) text += " dtype_of " + name_of(node.dtype_of);
    if (node.without_autocast) text += " without_autocast";
    if (node.copies_to_view) text += " copies_to_view";
    for (const KeptValue& kept : node.keeps)
      text += " keep " + name_of(kept.value) + " until " + name_of(kept.until);
    for (size_t i = 0; i < node.drops.size(); ++i) text += (i ? ", " : " drop ") + name_of(node.drops[i]);
    line("{}", text);
  }

  std::string target_text(const Graph& graph, const Target& target) const {
    if (!target.list) return target.values.empty() ? "()" : definition_of(graph, target.values[0]);
    std::string text = "[";
    for (const ValueId value : target.values)
      text += (text.size() > 1 ? ", " : "") + definition_of(graph, value);
    return text + "]";
  }

  void print_graph(const Graph& graph) {
    line("graph {{");
    indent_ += 2;
    name_values(graph);
    for (const ValueId input : graph.inputs) line("input {}", definition_of(graph, input));
    print_nodes(graph);
    for (const Operand& output : graph.outputs) line("return {}", operand_text(output));
    names_.pop_back();
    indent_ -= 2;
    const size_t number = graphs_.size();
    graphs_.emplace(&graph, fmt::format("g{}", number));
    line("}} as g{}", number);
  }

  // --- Stacks: what a call needs to be said before it. 0: none.

  int print_scope(int32_t modules) {
    if (modules < 0) return 0;
    int number = 0;
    for (const ModuleCall& call : program_.module_stacks[size_t(modules)]) {
      const auto known = program_.module_types.find(call.path);
      std::string entry = word_text(call.path);
      if (known == program_.module_types.end() || known->second != call.type)
        entry += " type " + word_text(call.type);
      if (call.key != call.path) entry += " key " + word_text(call.key);
      const int parent = number;
      const auto found = scopes_.number_of(parent, entry);
      number = found.number;
      if (found.is_new) line("scope m{} = {}{}", number, entry, parent ? fmt::format(" in m{}", parent) : "");
    }
    return number;
  }

  int print_stack(int32_t source) {
    if (source < 0) return 0;
    int number = 0;
    for (const SourceLine& source_line : program_.source_stacks[size_t(source)]) {
      const int parent = number;
      const auto found = stacks_.number_of(parent, line_number(source_line));
      number = found.number;
      if (found.is_new)
        line("stack s{} = {}{}", number, line_number(source_line),
             parent ? fmt::format(" in s{}", parent) : "");
    }
    return number;
  }

  std::string line_number(const SourceLine& source) {
    const auto file = files_.number_of(0, source.file);
    if (file.is_new) line("file f{} = {}", file.number, quoted_text(source.file));
    const std::string entry = fmt::format("f{} {} {} {}", file.number, source.line,
                                          word_text(source.function), quoted_text(source.code));
    const auto found = lines_.number_of(0, entry);
    if (found.is_new) line("line l{} = {}", found.number, entry);
    return fmt::format("l{}", found.number);
  }

  // --- Inputs and outputs

  void print_input(const ProgramInput& input) {
    if (input.kind == ProgramInput::Kind::constant) {
      const std::string value =
          input.value == kNoValue ? "" : " as " + definition_of(program_.graph, input.value);
      return line("constant {} = {}{}", word_text(input.name), constant_text(input.constant), value);
    }
    std::string text = fmt::format("{} {} = {}", to_string(input.kind), word_text(input.name),
                                   definition_of(program_.graph, input.value));
    if (!input.persistent) text += " not_persistent";
    if (input.own_dtype) text += " own_dtype";
    if (input.tied_to >= 0) text += " tied " + word_text(program_.inputs[size_t(input.tied_to)].name);
    const auto exported = program_.resizing.inputs.find(input.value);
    if (exported != program_.resizing.inputs.end()) text += " exported " + to_string(exported->second);
    line("{}", text);
  }

  void print_output(const ProgramOutput& output) {
    line("{}{} = {}", to_string(output.kind), output.name.empty() ? "" : " " + word_text(output.name),
         operand_text(output.operand));
  }

  const Program& program_;
  std::string text_;
  size_t indent_ = 0;
  std::vector<std::vector<std::string>> names_;  // of values, per graph that is being printed, innermost last
  std::map<const Graph*, std::string> graphs_;
  StackNumbers scopes_, files_, lines_, stacks_;
};

}  // namespace

std::string to_text(const Program& program) { return Printer(program).print(); }

}  // namespace metaprof
