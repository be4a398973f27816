#include "program/source/dtypes.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "program/def_use.h"
#include "program/source/conversions.h"
#include "program/visit.h"

namespace metaprof {
namespace {

bool asks_for_float32(const GraphNode& node) {
  const Operand* dtype = node.operand_named("dtype");
  return dtype && dtype->kind == Operand::Kind::constant && dtype->constant.kind() == Value::Kind::integer &&
         dtype->constant.integer() == static_cast<int64_t>(DType::f32);
}

// The innermost source line; empty if there is none.
std::string_view line_of(const Program& program, const GraphNode& node) {
  if (node.source < 0) return {};
  const auto& lines = program.source_stacks[size_t(node.source)];
  return lines.empty() ? std::string_view() : lines.back().code;
}

// "x" of "y.to(x.dtype)"; empty if the line asks no variable.
std::string_view asked_variable(std::string_view code) {
  constexpr std::string_view kDtype = ".dtype";
  const size_t end = code.find(kDtype);
  if (end == std::string_view::npos) return {};
  size_t begin = end;
  while (begin > 0 && is_of_name(code[begin - 1])) --begin;
  return begin > 0 && code[begin - 1] == '.' ? std::string_view() : code.substr(begin, end - begin);
}

bool names_float32(const Program& program, const GraphNode& node) {
  const std::string_view code = line_of(program, node);
  if (code.find(".float()") != std::string::npos) return true;
  const size_t at = code.find("torch.float");  // not torch.float16
  return at != std::string::npos &&
         (code.compare(at, 13, "torch.float32") == 0 || !std::isdigit(code[at + 11]));
}

class DtypeSources {
 public:
  DtypeSources(const Program& program, const Graph& graph, const SourceFrames& frames)
      : program_(program), graph_(graph), frames_(frames), def_use_(graph) {
    for (const ProgramInput& input : program.inputs)
      if (input.kind == ProgramInput::Kind::parameter || input.kind == ProgramInput::Kind::buffer)
        state_.insert(input.value);
  }

  // Of a node that asks for float32 and does not name it.
  ValueId of(size_t index) const {
    const GraphNode& node = graph_.nodes[index];
    const ValueId named = value_of_variable(index, asked_variable(line_of(program_, node)));
    if (named != kNoValue) return named;
    const ValueId converted = first_tensor(node);
    if (converted == kNoValue) return partner(index);
    return is_float32(converted) ? module_argument(index) : kNoValue;
  }

 private:
  bool is_float32(ValueId value) const {
    const auto& tensor = graph_.values[size_t(value)].tensor;
    return tensor && tensor->dtype == DType::f32;
  }

  static ValueId first_tensor(const GraphNode& node) {
    for (const Operand& operand : node.operands)
      if (operand.kind == Operand::Kind::value) return operand.value;
    return kNoValue;
  }

  // A floating tensor that flows: neither a parameter nor a buffer.
  bool flows(ValueId value) const { return is_float32(value) && !state_.contains(value); }

  // What the function that makes a call bound to this name last; kNoValue: it bound nothing, or no floating
  // tensor.
  ValueId value_of_variable(size_t index, std::string_view name) const {
    const CallSite& site = frames_.sites[index];
    if (name.empty() || site.frames.empty()) return kNoValue;
    const auto& statements = frames_.frames[size_t(site.frames.back())].statements;
    for (size_t i = statements.size(); i-- > 0;) {
      const int number = statements[i];
      const Statement& statement = frames_.statements[size_t(number)];
      if (number >= site.statements.back() || statement.names.size() != 1 || statement.names[0] != name)
        continue;
      const GraphNode& last = graph_.nodes[size_t(statement.last_node)];
      if (last.targets.size() != 1 || last.targets[0].values.size() != 1) return kNoValue;
      const ValueId value = last.targets[0].values[0];
      return value != kNoValue && is_float32(value) ? value : kNoValue;
    }
    return kNoValue;
  }

  // The module stacks of both nodes agree down to that of the first.
  bool within(int32_t modules, const GraphNode& node) const {
    if (modules < 0) return true;
    if (node.modules < 0) return false;
    const auto& outer = program_.module_stacks[size_t(modules)];
    const auto& inner = program_.module_stacks[size_t(node.modules)];
    return inner.size() >= outer.size() && std::equal(outer.begin(), outer.end(), inner.begin());
  }

  ValueId module_argument(size_t index) const {
    const int32_t modules = graph_.nodes[index].modules;
    size_t begin = index;
    while (begin > 0 && within(modules, graph_.nodes[begin - 1])) --begin;
    for (size_t i = begin; i < graph_.nodes.size() && within(modules, graph_.nodes[i]); ++i)
      for (const Operand& operand : graph_.nodes[i].operands)
        if (operand.kind == Operand::Kind::value && flows(operand.value) &&
            def_use_.maker(operand.value) < static_cast<int>(begin))
          return operand.value;
    return kNoValue;
  }

  // The value, or what it was made of, that was there before a node.
  ValueId before(size_t index, ValueId value) const {
    while (value != kNoValue && def_use_.maker(value) >= static_cast<int>(index)) {
      const GraphNode& maker = graph_.nodes[size_t(def_use_.maker(value))];
      const auto tensors = std::count_if(maker.operands.begin(), maker.operands.end(), [](const Operand& o) {
        return o.kind == Operand::Kind::value || o.kind == Operand::Kind::values;
      });
      value = tensors == 1 ? first_tensor(maker) : kNoValue;
    }
    return value != kNoValue && flows(value) ? value : kNoValue;
  }

  // Follows what the node makes to the first call that takes another floating tensor with it.
  ValueId partner(size_t index) const {
    ValueId made = first_result(graph_.nodes[index]);
    for (size_t i = index + 1; made != kNoValue && i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      bool takes = false;
      ValueId other = kNoValue;
      for (const Operand& operand : node.operands) {
        if (operand.kind != Operand::Kind::value) continue;
        takes |= operand.value == made;
        if (operand.value != made && other == kNoValue && flows(operand.value)) other = operand.value;
      }
      if (!takes) continue;
      if (other != kNoValue) return before(index, other);
      made = first_result(node);
    }
    return kNoValue;
  }

  const Program& program_;
  const Graph& graph_;
  const SourceFrames& frames_;
  const DefUse def_use_;
  std::set<ValueId> state_;
};

}  // namespace

void find_named_dtypes(const Program& program, Graph& graph) {
  for (GraphNode& node : graph.nodes) node.dtype_named = names_float32(program, node);
}

void find_products_without_autocast(Graph& graph, const Registry& registry) {
  std::vector<char> converted(graph.values.size(), 0);
  for (GraphNode& node : graph.nodes) {
    const Operator* op = registry.find(node.op);
    if (!op) continue;
    int tensors = 0, of_float32 = 0;
    for (const Operand& operand : node.operands) {
      if (operand.kind != Operand::Kind::value) continue;
      ++tensors;
      of_float32 += converted[size_t(operand.value)];
    }
    const Facts& facts = op->record.facts;
    node.without_autocast = facts.product && tensors == 2 && of_float32 == 2;
    const bool passes_on = facts.view && of_float32 == 1;
    const bool converts = is_conversion(*op) && node.dtype_named;
    for_each_result(node, [&](ValueId value) { converted[size_t(value)] = passes_on || converts; });
  }
}

void find_dtype_sources(const Program& program, Graph& graph, const SourceFrames& source) {
  std::optional<DtypeSources> sources;  // few programs ask for a dtype at all
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!asks_for_float32(graph.nodes[i]) || graph.nodes[i].dtype_named) continue;
    if (!sources) sources.emplace(program, graph, source);
    graph.nodes[i].dtype_of = sources->of(i);
  }
}

}  // namespace metaprof
