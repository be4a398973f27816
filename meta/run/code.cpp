#include "meta/run/code.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "meta/program/def_use.h"
#include "meta/program/visit.h"
#include "meta/session/limits.h"

namespace metaprof {
namespace {

bool has_unknown_operand(const GraphNode& node) {
  return std::ranges::find(node.operands, Operand::Kind::unknown, &Operand::kind) != node.operands.end();
}

Instruction::Place place_of(const Program& program, const GraphNode& node, size_t operand,
                            const Schema& schema) {
  const std::string& name = node.operands[operand].name;
  const int at = name.empty() ? static_cast<int>(operand) : schema.find(name_hash(name));
  if (at < 0 || at >= static_cast<int>(schema.arguments.size()))
    fail("{}: {} has no argument '{}'", program.origin, node.op, name);
  const Argument& argument = schema.arguments[size_t(at)];
  return {.argument = static_cast<uint8_t>(at),
          .role = argument.role,
          .is_dtype = argument.type == Type::dtype,
          .is_index_list = argument.optional_elements};
}

// The first result that is a tensor; null: the program says nothing of it.
const TensorFacts* first_result(const Graph& graph, const GraphNode& node) {
  for (const Target& target : node.targets)
    for (const ValueId value : target.values)
      if (value != kNoValue && graph.values[size_t(value)].tensor)
        return &*graph.values[size_t(value)].tensor;
  return nullptr;
}

bool is_assumed(const Program& program, const TensorFacts& facts) {
  return !program.assumed.empty() && std::ranges::any_of(facts.size_expressions, [&](int32_t expression) {
    if (expression < 0) return false;
    const std::vector<std::string> symbols = symbols_of(*program.expressions[size_t(expression)].expression);
    return std::ranges::any_of(symbols, [&](const std::string& s) { return program.assumed.contains(s); });
  });
}

Instruction instruction_of(const Program& program, const Graph& graph, const GraphNode& node,
                           const Registry& registry) {
  using Kind = Instruction::Kind;
  Instruction made;
  made.node = &node;
  if (makes_only_numbers(graph, node)) {
    made.kind = Kind::numbers;
    return made;
  }
  if ((made.region = region_call(node))) {
    made.kind = Kind::region;
    return made;
  }
  if ((made.step = step_call(node.op))) {
    made.kind = Kind::step;
    return made;
  }
  const Operator* op = registry.find(node.op);
  if (!op || has_unknown_operand(node)) return made;
  if (op->schema.arguments.size() > kMostArguments)
    fail("{} takes {} arguments; at most {} are supported", op->name, op->schema.arguments.size(),
         kMostArguments);
  made.kind = op->record.facts.artefact ? Kind::nothing : Kind::call;
  made.op = op;
  for (size_t i = 0; i < node.operands.size(); ++i)
    made.places.push_back(place_of(program, node, i, op->schema));
  if (op->record.facts.reads_data ||
      std::ranges::any_of(made.places, [](Instruction::Place place) { return place.is_index_list; }))
    made.first_result = first_result(graph, node);
  made.assumed = made.first_result && is_assumed(program, *made.first_result);
  return made;
}

// What goes into regions, and what comes out of them.
class Borders {
 public:
  Borders(const Program& program, const Graph& graph, const std::vector<CheckpointRegion>& regions)
      : graph_(graph), regions_(regions), def_use_(graph), region_of_(graph.nodes.size(), kOutside) {
    for (const ProgramInput& input : program.inputs)
      if (input.kind != ProgramInput::Kind::user) state_.insert(input.value);
    for (const GraphNode& node : graph.nodes) add_named_state(node);
    size_t end = 0;
    for (size_t r = 0; r < regions.size(); ++r) {
      const CheckpointRegion& region = regions[r];
      if (region.begin < end || region.end <= region.begin || region.end > graph.nodes.size())
        fail("{}: the checkpointed calls {} to {} are none of the program, or checkpointed twice",
             program.origin, region.begin, region.end);
      end = region.end;
      for (size_t node = region.begin; node < region.end; ++node) region_of_[node] = static_cast<int>(r);
    }
  }

  std::vector<Code::Checkpoint> find() {
    inputs_.resize(regions_.size());
    outputs_.resize(regions_.size());
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      for_each_argument(graph_.nodes[node], [&](ValueId value) { use(value, region_of_[node]); });
    for (const Operand& output : graph_.outputs)
      for_each_value(output, [&](ValueId value) { use(value, kOutside); });
    std::vector<Code::Checkpoint> found;
    for (size_t r = 0; r < regions_.size(); ++r) {
      auto& checkpoint = found.emplace_back();
      checkpoint.region = regions_[r];
      for (const ValueId value : inputs_[r])
        (state_.contains(value) ? checkpoint.state : checkpoint.inputs).push_back(value);
      checkpoint.outputs.assign(outputs_[r].begin(), outputs_[r].end());
    }
    return found;
  }

 private:
  static constexpr int kOutside = -1;

  // A captured program says of tensors what they are for.
  void add_named_state(const GraphNode& node) {
    if (node.op != "step::name" || node.operands.size() < 3) return;
    const Value& purpose = node.operands[0].constant;
    if (purpose.kind() != Value::Kind::string) return;
    if (purpose.string() == "parameter" || purpose.string() == "buffer")
      state_.insert(node.operands[2].value);
  }

  void use(ValueId value, int region) {
    const int32_t maker = def_use_.maker(value);
    const int made_in = maker == kNoNode ? kOutside : region_of_[size_t(maker)];
    if (made_in == region) return;
    if (made_in != kOutside) outputs_[size_t(made_in)].insert(value);
    if (region != kOutside) inputs_[size_t(region)].insert(value);
  }

  const Graph& graph_;
  const std::vector<CheckpointRegion>& regions_;
  const DefUse def_use_;
  std::vector<int> region_of_;  // per node
  std::set<ValueId> state_;
  std::vector<std::set<ValueId>> inputs_, outputs_;  // per region
};

}  // namespace

Code make_code(const Program& program, const Graph& graph, const Registry& registry,
               const std::vector<CheckpointRegion>& checkpoints) {
  Code code;
  code.graph = &graph;
  code.instructions.reserve(graph.nodes.size());
  for (const GraphNode& node : graph.nodes)
    code.instructions.push_back(instruction_of(program, graph, node, registry));
  if (!checkpoints.empty()) code.checkpoints = Borders(program, graph, checkpoints).find();
  return code;
}

}  // namespace metaprof
