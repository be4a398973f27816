#include "step/compiled/aot/graph_break.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "program/visit.h"

namespace metaprof {
namespace {

using Lines = std::span<const SourceLine>;  // outermost first

bool is_recurrent(const GraphNode& node) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"aten::lstm.", "aten::gru.",
                                                                     "aten::rnn_tanh.", "aten::rnn_relu."},
                             [&](std::string_view name) { return node.op.starts_with(name); });
}

// The compiler passes over functions of the framework itself, unless it looks into them from another's.
bool is_framework(const SourceLine& line) { return line.file.starts_with("torch/"); }

bool is_word(std::string_view text, size_t begin, size_t count) {
  const auto inside = [&](size_t i) { return i < text.size() && (std::isalnum(text[i]) || text[i] == '_'); };
  return (begin == 0 || !inside(begin - 1)) && !inside(begin + count);
}

bool names(std::string_view code, std::string_view word) {
  for (size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1))
    if (is_word(code, at, word.size())) return true;
  return false;
}

class Cutter {
 public:
  Cutter(const Program& program, const Framework& framework)
      : program_(program), nodes_(program.graph.nodes), framework_(framework) {}

  std::vector<ProgramPart> cut() {
    cut_function(0, nodes_.size(), 0);
    return std::move(parts_);
  }

 private:
  // Calls that one line of a function makes by one call of another function, or by none.
  struct Step {
    size_t begin, end;
    bool recurrent;           // a recurrent network is among them
    std::string_view module;  // that is called, its last name; empty: none
  };

  Lines lines_of(size_t node) const {
    const int32_t source = nodes_[node].source;
    if (source < 0) return {};
    return program_.source_stacks[static_cast<size_t>(source)];
  }
  std::span<const ModuleCall> modules_of(size_t node) const {
    const int32_t modules = nodes_[node].modules;
    if (modules < 0) return {};
    return program_.module_stacks[static_cast<size_t>(modules)];
  }

  bool has_recurrent(size_t begin, size_t end) const {
    return std::any_of(nodes_.begin() + static_cast<ptrdiff_t>(begin),
                       nodes_.begin() + static_cast<ptrdiff_t>(end), is_recurrent);
  }

  // Nodes begin … end - 1 are called by a function, whose lines are those at `depth`, and which Python calls.
  void cut_function(size_t begin, size_t end, size_t depth) {
    const auto deep_enough = [&](size_t i) { return lines_of(i).size() > depth; };
    for (size_t i = begin; i < end; ++i)
      if (!deep_enough(i)) return add(begin, end, depth, !has_recurrent(begin, end));
    if (!is_framework(lines_of(begin)[depth])) {
      if (!has_recurrent(begin, end)) return add(begin, end, depth, true);
      if (!is_given_up(begin, end, depth)) return cut_around_calls(begin, end, depth);
      begin = compile_statements_before(begin, end, depth);
    }
    for (const Step& step : steps_of(begin, end, depth)) leave_to_python(step, depth);
  }

  void cut_around_calls(size_t begin, size_t end, size_t depth) {
    size_t compiled = begin;
    for (const Step& step : steps_of(begin, end, depth)) {
      if (!step.recurrent) continue;
      add(compiled, step.begin, depth, true);
      leave_to_python(step, depth);
      compiled = step.end;
    }
    add(compiled, end, depth, true);
  }

  void leave_to_python(const Step& step, size_t depth) {
    if (lines_of(step.begin).size() > depth + 1 && !is_recurrent_module(step, depth))
      return cut_function(step.begin, step.end, depth + 1);
    add(step.begin, step.end, depth, false);
  }

  bool is_recurrent_module(const Step& step, size_t depth) const {
    const Lines lines = lines_of(step.begin);
    return lines.size() > depth + 1 && lines[depth + 1].file.ends_with("torch/nn/modules/rnn.py");
  }

  // The compiler does not cut loops, and before 2.15 nowhere behind where a function takes the network from a module.
  bool is_given_up(size_t begin, size_t end, size_t depth) const {
    return std::ranges::any_of(steps_of(begin, end, depth), [&](const Step& step) {
      if (!step.recurrent) return false;
      if (!framework_.compiles_around_recurrent_networks && is_recurrent_module(step, depth)) return true;
      return is_in_loop(step, depth);
    });
  }

  // Where a network is taken from a module before 2.15, what statements before that one do is compiled if it is more than
  // one call; the rest of the function is not. Returns where that begins.
  size_t compile_statements_before(size_t begin, size_t end, size_t depth) {
    if (framework_.compiles_around_recurrent_networks) return begin;
    const std::vector<Step> steps = steps_of(begin, end, depth);
    const auto first = std::ranges::find_if(steps, &Step::recurrent);
    if (is_in_loop(*first, depth) || !is_recurrent_module(*first, depth)) return begin;
    size_t statement = first->begin;
    while (statement > begin && lines_of(statement - 1)[depth] == lines_of(first->begin)[depth]) --statement;
    if (calls_of(begin, statement) <= 1) return begin;
    add(begin, statement, depth, true);
    return statement;
  }

  // As Python makes them: an index is one call, whatever it slices and selects.
  size_t calls_of(size_t begin, size_t end) const {
    size_t calls = 0;
    for (size_t i = begin; i < end; ++i) {
      const bool indexes =
          nodes_[i].op.starts_with("aten::slice.") || nodes_[i].op.starts_with("aten::select.");
      if (!indexes || i == begin || nodes_[i - 1].source != nodes_[i].source) ++calls;
    }
    return calls;
  }

  bool is_in_loop(const Step& step, size_t depth) const {
    return !step.module.empty() && !names(lines_of(step.begin)[depth].code, step.module);
  }

  std::vector<Step> steps_of(size_t begin, size_t end, size_t depth) const {
    const size_t level = common_modules(begin, end);
    const auto module_of = [&](size_t i) {
      return modules_of(i).size() > level ? &modules_of(i)[level] : nullptr;
    };
    const auto is_same = [&](size_t i, size_t j) {
      const Lines left = lines_of(i), right = lines_of(j);
      if (left[depth] != right[depth] || (left.size() > depth + 1) != (right.size() > depth + 1))
        return false;
      const ModuleCall *left_module = module_of(i), *right_module = module_of(j);
      if ((left_module != nullptr) != (right_module != nullptr)) return false;
      return left_module == nullptr || left_module->key == right_module->key;
    };
    std::vector<Step> steps;
    for (size_t i = begin; i < end; ++i) {
      if (steps.empty() || !is_same(steps.back().begin, i)) {
        const ModuleCall* module = module_of(i);
        steps.push_back({.begin = i,
                         .end = i,
                         .recurrent = false,
                         .module = module != nullptr ? last_name(module->path) : std::string_view()});
      }
      steps.back().end = i + 1;
      steps.back().recurrent |= is_recurrent(nodes_[i]);
    }
    return steps;
  }

  static std::string_view last_name(std::string_view path) {
    return path.substr(path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.') + 1);
  }

  // How many modules all calls of a function are in. One that makes its calls through one module is in no fewer
  // than these without it.
  size_t common_modules(size_t begin, size_t end) const {
    size_t level = modules_of(begin).size();
    for (size_t i = begin; i < end; ++i) {
      const auto first = modules_of(begin), other = modules_of(i);
      const auto [left, right] = std::ranges::mismatch(first.first(level), other);
      level = static_cast<size_t>(left - first.begin());
    }
    return level;
  }

  void add(size_t begin, size_t end, size_t depth, bool compiled) {
    if (begin == end) return;
    if (!compiled && !parts_.empty() && !parts_.back().compiled) {
      parts_.back().end = end;
      return;
    }
    std::string code;
    for (size_t i = begin; compiled && i < end; ++i) {
      code += nodes_[i].op;
      for (const SourceLine& line : lines_of(i).subspan(std::min(depth, lines_of(i).size())))
        code += fmt::format(" {}:{}", line.file, line.line);
      code += '\n';
    }
    parts_.push_back({.begin = begin, .end = end, .compiled = compiled, .code = std::move(code)});
  }

  const Program& program_;
  const std::vector<GraphNode>& nodes_;
  const Framework& framework_;
  std::vector<ProgramPart> parts_;
};

}  // namespace

bool calls_recurrent_network(const Program& program) {
  return std::ranges::any_of(program.graph.nodes, is_recurrent);
}

std::vector<ProgramPart> compiled_parts(const Program& program, const Framework& framework) {
  const size_t end = program.graph.nodes.size();
  if (!calls_recurrent_network(program)) return {{.begin = 0, .end = end, .compiled = true, .code = ""}};
  return Cutter(program, framework).cut();
}

namespace {

// Values that calls of one range make and calls of another take, each once, in the order in which they are taken.
std::vector<ValueId> taken(const Program& program, std::pair<size_t, size_t> makers,
                           std::pair<size_t, size_t> takers, ValueId also) {
  const Graph& graph = program.graph;
  std::vector<bool> made(graph.values.size(), false);
  std::vector<ValueId> values;
  const auto take = [&](ValueId value) {
    if (!made[static_cast<size_t>(value)]) return;
    made[static_cast<size_t>(value)] = false;
    values.push_back(value);
  };
  for (size_t i = makers.first; i < makers.second; ++i)
    for_each_result(graph.nodes[i], [&](ValueId value) { made[static_cast<size_t>(value)] = true; });
  for (size_t i = takers.first; i < takers.second; ++i) for_each_argument(graph.nodes[i], take);
  if (also != kNoValue) take(also);
  return values;
}

}  // namespace

std::vector<ValueId> handed_to(const Program& program, size_t begin, size_t end) {
  return taken(program, {0, begin}, {begin, end}, kNoValue);
}

std::vector<ValueId> handed_on(const Program& program, size_t begin, size_t end) {
  return taken(program, {begin, end}, {end, program.graph.nodes.size()}, program.loss());
}

std::vector<ValueId> held_results(const Program& program, const ProgramPart& part) {
  std::vector<ValueId> held;
  for (size_t i = part.begin; i < part.end; ++i) {
    const GraphNode& node = program.graph.nodes[i];
    for_each_result(node, [&](ValueId value) { held.push_back(value); });
    if (is_recurrent(node) && i + 1 == part.end) continue;
    for (const ValueId value : node.drops) std::erase(held, value);
  }
  return held;
}

Program part_of(const Program& program, const ProgramPart& range, const std::vector<ValueId>& values,
                const std::vector<Value>& given, const std::vector<ValueId>& outputs) {
  Program part = program;
  const auto nodes = program.graph.nodes.begin();
  part.graph.nodes.assign(nodes + static_cast<ptrdiff_t>(range.begin),
                          nodes + static_cast<ptrdiff_t>(range.end));
  part.graph.outputs.clear();
  part.outputs.clear();
  for (GraphNode& node : part.graph.nodes)  // what the part returns it does not let go of
    std::erase_if(node.drops,
                  [&](ValueId value) { return std::ranges::find(outputs, value) != outputs.end(); });
  for (const ValueId value : outputs) {
    Operand output;
    output.kind = Operand::Kind::value;
    output.value = value;
    part.graph.outputs.push_back(output);
    part.outputs.push_back({.kind = ProgramOutput::Kind::user, .operand = output, .name = ""});
  }
  for (size_t i = 0; i < values.size(); ++i) {
    ValueFacts& facts = part.graph.values[static_cast<size_t>(values[i])];
    ProgramInput input;
    input.value = values[i];
    input.name = facts.name;
    if (given[i].is_tensor()) {
      const Tensor& tensor = given[i].tensor();
      const bool learns = tensor.requires_grad();
      if (facts.tensor && !part.resizing.empty()) part.resizing.inputs[values[i]] = facts.tensor->sizes;
      input.kind = learns ? ProgramInput::Kind::parameter : ProgramInput::Kind::user;
      facts.tensor = TensorFacts{.dtype = tensor.dtype(),
                                 .sizes = tensor.sizes(),
                                 .strides = tensor.strides(),
                                 .requires_grad = learns,
                                 .device = {},
                                 .size_expressions = {},
                                 .stride_expressions = {}};
      if (!tensor.is_cuda()) facts.tensor->device = tensor.device();
    } else {
      input.kind = ProgramInput::Kind::constant;
      input.constant = given[i];
    }
    part.graph.inputs.push_back(values[i]);
    part.inputs.push_back(std::move(input));
  }
  return part;
}

}  // namespace metaprof
