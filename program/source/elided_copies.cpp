#include "program/source/elided_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/shape.h"
#include "program/def_use.h"
#include "program/source/contiguous_calls.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr std::string_view kContiguous = "aten::contiguous", kView = "aten::view";

// A line of a statement, and the calls that it makes itself.
struct LineCalls {
  const SourceLine* line;
  size_t level;  // of the statement, in the stacks of its calls
  std::vector<size_t> nodes;
};

// By statement and line.
using CallsByLine = std::map<std::pair<int, int>, LineCalls>;

// The lines of the graph's statements that the predicate wants.
template <class Wanted>
CallsByLine calls_by_line(const Program& program, const Graph& graph, const SourceFrames& source,
                          Wanted wanted) {
  CallsByLine found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].source < 0) continue;
    const auto& stack = program.source_stacks[size_t(graph.nodes[i].source)];
    for (size_t level = 0; level < stack.size(); ++level) {
      if (!wanted(stack[level])) continue;
      LineCalls& calls = found[{source.sites[i].statements[level], stack[level].line}];
      calls.line = &stack[level];
      calls.level = level;
      if (level + 1 == stack.size()) calls.nodes.push_back(i);
    }
  }
  return found;
}

// The line's calls of that name, as far as the text tells which one is meant: one, or one for each round of a
// comprehension.
std::vector<size_t> nodes_called(const Graph& graph, const LineCalls& calls, NamedCall call) {
  std::vector<size_t> named, found;
  for (const size_t node : calls.nodes)
    if (name_of_call(graph.nodes[node]) == call.name) named.push_back(node);
  const auto total = static_cast<size_t>(times_called(calls.line->code, call.name));
  if (total == 0 || named.size() % total != 0) return {};
  for (size_t i = size_t(call.number); i < named.size(); i += total) found.push_back(named[i]);
  return found;
}

ValueId only_result(const GraphNode& node) {
  const bool one = node.targets.size() == 1 && !node.targets[0].list && node.targets[0].values.size() == 1;
  return one ? node.targets[0].values[0] : kNoValue;
}

bool was_in_format(const Graph& graph, ValueId value, MemoryFormat format) {
  if (value == kNoValue) return false;
  const auto& tensor = graph.values[size_t(value)].tensor;
  if (!tensor) return false;
  return format == MemoryFormat::contiguous ? is_contiguous(tensor->sizes, tensor->strides)
                                            : is_channels_last(tensor->sizes, tensor->strides);
}

bool says_contiguous(const SourceLine& line) { return line.code.find(".contiguous(") != std::string::npos; }

// Stacks of callers: what enclosed a call, without its innermost levels.
class CallerStacks {
 public:
  explicit CallerStacks(Program& program) : program_(program) {}

  /// Makes `caller` a call from the statement in which `node` stands at this level.
  void place(GraphNode& caller, const GraphNode& node, size_t level) {
    caller.source = node.source;
    caller.modules = node.modules;
    const auto& sources = program_.source_stacks[size_t(node.source)];
    if (level + 1 == sources.size()) return;
    const std::vector<SourceLine> outer(sources.begin(), sources.begin() + static_cast<int64_t>(level) + 1);
    // The m-th "forward" is that of the m-th module.
    const auto forwards = std::ranges::count(outer, "forward", &SourceLine::function);
    caller.source = index_of(program_.source_stacks, outer);
    if (node.modules < 0) return;
    const auto& modules = program_.module_stacks[size_t(node.modules)];
    const auto inside = std::min(forwards, static_cast<int64_t>(modules.size()));
    caller.modules =
        index_of(program_.module_stacks, std::vector<ModuleCall>(modules.begin(), modules.begin() + inside));
  }

 private:
  template <class Stack>
  static int32_t index_of(std::vector<Stack>& stacks, const Stack& stack) {
    const auto known = std::ranges::find(stacks, stack);
    if (known != stacks.end()) return static_cast<int32_t>(known - stacks.begin());
    stacks.push_back(stack);
    return static_cast<int32_t>(stacks.size() - 1);
  }

  Program& program_;
};

class ContiguousRestorer {
 public:
  ContiguousRestorer(Program& program, Graph& graph, const SourceFrames& source)
      : program_(program), graph_(graph), source_(source), def_use_(graph) {}

  void run() {
    for (const auto& [place, calls] : calls_by_line(program_, graph_, source_, says_contiguous))
      for (const ContiguousCall& call : contiguous_calls_in(calls.line->code)) find(place.first, calls, call);
    if (!missing_.empty()) insert();
  }

 private:
  // A call that is missing in front of the node `before`. It makes what one argument of that node is, or what all
  // nodes from there on take.
  struct Missing {
    size_t before;
    ValueId of;
    std::optional<size_t> argument;
    MemoryFormat format;
    size_t like, level;  // it stands in this node's statement of this level
  };

  void find(int statement, const LineCalls& calls, const ContiguousCall& call) {
    const MemoryFormat format = call.format;
    if (call.then) {
      find_in_arguments(calls, *call.then, 0, format);
    } else if (call.is_whole) {
      find_result(size_t(source_.statements[size_t(statement)].last_node), calls.level, format);
    } else if (call.of) {
      for (const size_t node : nodes_called(graph_, calls, *call.of)) find_result(node, calls.level, format);
    } else if (call.within) {
      find_in_arguments(calls, *call.within, size_t(call.argument), format);
    }
  }

  void find_in_arguments(const LineCalls& calls, NamedCall call, size_t argument, MemoryFormat format) {
    for (const size_t node : nodes_called(graph_, calls, call)) {
      const auto& operands = graph_.nodes[node].operands;
      if (argument < operands.size() && operands[argument].kind == Operand::Kind::value)
        add({node, operands[argument].value, argument, format, node, calls.level});
    }
  }

  void find_result(size_t node, size_t level, MemoryFormat format) {
    const ValueId result = only_result(graph_.nodes[node]);
    if (result != kNoValue && graph_.nodes[node].source >= 0)
      add({node + 1, result, std::nullopt, format, node, level});
  }

  void add(const Missing& missing) {
    const auto is_contiguous_call = [&](int32_t node) {
      return node != kNoNode && graph_.nodes[size_t(node)].op == kContiguous;
    };
    if (is_contiguous_call(def_use_.maker(missing.of))) return;
    if (std::ranges::any_of(def_use_.users(missing.of), is_contiguous_call)) return;
    if (was_in_format(graph_, missing.of, missing.format)) missing_.push_back(missing);
  }

  void insert() {
    std::ranges::stable_sort(missing_, {}, &Missing::before);
    std::vector<GraphNode> nodes;
    CallerStacks stacks(program_);
    auto next = missing_.begin();
    for (size_t i = 0; i <= graph_.nodes.size(); ++i) {
      std::map<size_t, ValueId> arguments;
      for (; next != missing_.end() && next->before == i; ++next) {
        const ValueId copy = copy_of(next->of);
        nodes.push_back(call(now(next->of), copy, next->format));
        stacks.place(nodes.back(), graph_.nodes[next->like], next->level);
        (next->argument ? arguments[*next->argument] : copies_[next->of]) = copy;
      }
      if (i == graph_.nodes.size()) break;
      for_each_argument(graph_.nodes[i], [&](ValueId& value) { value = now(value); });
      for (const auto& [argument, copy] : arguments) graph_.nodes[i].operands[argument].value = copy;
      nodes.push_back(graph_.nodes[i]);
    }
    for (Operand& output : graph_.outputs)
      for_each_value(output, [&](ValueId& value) { value = now(value); });
    graph_.nodes = std::move(nodes);
  }

  // What is taken from here on in place of a value.
  ValueId now(ValueId value) const {
    const auto copy = copies_.find(value);
    return copy == copies_.end() ? value : copy->second;
  }

  static GraphNode call(ValueId of, ValueId copy, MemoryFormat format) {
    GraphNode node;
    node.op = kContiguous;
    Operand& self = node.operands.emplace_back();
    self.kind = Operand::Kind::value;
    self.name = "self";
    self.value = of;
    if (format != MemoryFormat::contiguous) {
      Operand& given = node.operands.emplace_back();
      given.name = "memory_format";
      given.constant = Value(format);
    }
    node.targets = {{.list = false, .values = {copy}}};
    return node;
  }

  ValueId copy_of(ValueId value) {
    ValueFacts facts = graph_.values[size_t(value)];
    facts.name = fmt::format("{}_contiguous_{}", facts.name, graph_.values.size());
    graph_.values.push_back(std::move(facts));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  Program& program_;
  Graph& graph_;
  const SourceFrames& source_;
  const DefUse def_use_;
  std::vector<Missing> missing_;
  std::map<ValueId, ValueId> copies_;  // that all later calls take
};

// Outer graphs first: the frames of a graph look at the calls of those inside it, whose stacks the finder must know.
void restore_in(Program& program, Graph& graph, const FrameFinder& frames) {
  const SourceFrames source = frames.frames_of(graph);
  ContiguousRestorer(program, graph, source).run();
  for (GraphNode& node : graph.nodes)
    for (Operand& operand : node.operands) {
      if (!operand.graph) continue;
      auto inner = std::make_shared<Graph>(*operand.graph);
      restore_in(program, *inner, frames);
      operand.graph = std::move(inner);
    }
}

class ViewsThatCopy {
 public:
  ViewsThatCopy(const Program& program, Graph& graph, const SourceFrames& source)
      : program_(program), graph_(graph), source_(source), def_use_(graph) {}

  void run() {
    for (GraphNode& node : graph_.nodes)
      node.copies_to_view = node.op == kView && !node.operands.empty() &&
                            node.operands[0].value != kNoValue &&
                            was_in_format(graph_, node.operands[0].value, MemoryFormat::contiguous);
    const auto calls_view = [](const SourceLine& line) { return times_called(line.code, "view") > 0; };
    for (const auto& [place, calls] : calls_by_line(program_, graph_, source_, calls_view))
      for (int number = 0; number < times_called(calls.line->code, "view"); ++number)
        for (const size_t node : nodes_called(graph_, calls, {"view", number}))
          if (graph_.nodes[node].op == kView && shows_tensor(calls, node, number))
            graph_.nodes[node].copies_to_view = false;
  }

 private:
  // The line, or the one before it, makes what is viewed.
  bool shows_tensor(const LineCalls& calls, size_t view, int number) const {
    const ValueId viewed = graph_.nodes[view].operands[0].value;
    const int32_t maker = viewed == kNoValue ? kNoNode : def_use_.maker(viewed);
    if (maker == kNoNode) return false;
    const Receiver receiver = receiver_of(calls.line->code, {"view", number});
    if (!receiver.call.empty())
      return std::ranges::find(calls.nodes, size_t(maker)) != calls.nodes.end() &&
             name_of_call(graph_.nodes[size_t(maker)]) == receiver.call;
    return !receiver.variable.empty() && binds_before(size_t(maker), view, receiver.variable, *calls.line);
  }

  bool binds_before(size_t maker, size_t view, std::string_view variable, const SourceLine& line) const {
    const CallSite &made = source_.sites[maker], &viewed = source_.sites[view];
    const size_t level = viewed.frames.size() - 1;
    if (made.frames.size() <= level || made.frames[level] != viewed.frames[level]) return false;
    const Statement& statement = source_.statements[size_t(made.statements[level])];
    return statement.line + 1 == line.line && statement.last_node < static_cast<int>(view) &&
           std::ranges::find(statement.names, variable) != statement.names.end();
  }

  const Program& program_;
  Graph& graph_;
  const SourceFrames& source_;
  const DefUse def_use_;
};

}  // namespace

void restore_contiguous(Program& program) {
  const bool any = std::ranges::any_of(program.source_stacks, [](const std::vector<SourceLine>& stack) {
    return std::ranges::any_of(stack, says_contiguous);
  });
  if (any) restore_in(program, program.graph, FrameFinder(program));
}

void find_copies_to_view(const Program& program, Graph& graph, const SourceFrames& source) {
  ViewsThatCopy(program, graph, source).run();
}

}  // namespace metaprof
