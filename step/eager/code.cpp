#include "step/eager/code.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "meta/session/limits.h"
#include "program/def_use.h"
#include "program/visit.h"
#include "step/eager/out_variants.h"

namespace metaprof {
namespace {

bool has_unknown_operand(const GraphNode& node) {
  return std::ranges::find(node.operands, Operand::Kind::unknown, &Operand::kind) != node.operands.end();
}

// A list that the source writes (`x[[0, 2]]`) is an input of the graph; what a call made is a tensor.
bool is_list_of_source(const Graph& graph, const Operand& operand) {
  bool all_inputs = true;
  for_each_value(operand, [&](ValueId value) {
    all_inputs &= std::ranges::find(graph.inputs, value) != graph.inputs.end();
  });
  return all_inputs;
}

Instruction::Place place_of(const Program& program, const Graph& graph, const GraphNode& node, size_t operand,
                            const Schema& schema) {
  const std::string& name = node.operands[operand].name;
  const int at = schema.place_of(name, operand);
  if (at < 0 && !name.empty()) fail("{}: {} has no argument '{}'", program.origin, node.op, name);
  if (at < 0)
    fail("{}: {} takes {} arguments, got {}", program.origin, node.op, schema.arguments.size(),
         node.operands.size());
  const Argument& argument = schema.arguments[size_t(at)];
  return {.argument = static_cast<uint8_t>(at),
          .role = argument.role,
          .is_dtype = argument.type == Type::dtype,
          .is_index_list = argument.optional_elements && is_list_of_source(graph, node.operands[operand])};
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
  if (node.op.starts_with("c10d::") || node.op.starts_with("_c10d_functional::")) {
    made.kind = Kind::collective;
    return made;
  }
  const Operator* op = registry.find(node.op);
  const bool writes_out = !op && (op = functional_of(registry, node));
  if (!op || has_unknown_operand(node)) return made;
  if (op->schema.arguments.size() > kMostArguments)
    fail("{} takes {} arguments; at most {} are supported", op->name, op->schema.arguments.size(),
         kMostArguments);
  if (node.copies_to_view && node.op != "aten::view")
    fail("{}: {} copies to view, but is no aten::view", program.origin, node.op);
  made.kind = writes_out ? Kind::out : op->record.facts.artefact ? Kind::nothing : Kind::call;
  made.op = op;
  for (size_t i = 0; i < node.operands.size(); ++i)
    made.places.push_back(writes_out && is_out(*op, node.operands[i])
                              ? Instruction::Place{.is_written = true}
                              : place_of(program, graph, node, i, op->schema));
  if (op->record.facts.reads_data || std::ranges::any_of(op->schema.arguments, &Argument::optional_elements))
    made.first_result = first_result(graph, node);
  made.assumed = made.first_result && is_assumed(program, *made.first_result);
  return made;
}

constexpr size_t kCallsFollow = 6;  // of step::backward's arguments

bool calls_follow(const Instruction& instruction) {
  const GraphNode& node = *instruction.node;
  return instruction.step == StepCall::backward && node.operands.size() > kCallsFollow &&
         node.operands[kCallsFollow].constant.kind() == Value::Kind::boolean &&
         node.operands[kCallsFollow].constant.boolean();
}

// What goes into regions, and what comes out of them.
class Borders {
 public:
  Borders(const Program& program, const Graph& graph, const Registry& registry)
      : program_(program),
        graph_(graph),
        registry_(registry),
        def_use_(graph),
        innermost_(graph.nodes.size(), kOutside) {
    for (const ProgramInput& input : program.inputs)
      if (input.kind != ProgramInput::Kind::user) state_.insert(input.value);
    for (const GraphNode& node : graph.nodes) add_named_state(node);
  }

  std::vector<Code::Region> find(const std::vector<RecomputeRegion>& regions) {
    number(regions, kOutside, 0, graph_.nodes.size());
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      for_each_argument(graph_.nodes[node], [&](ValueId value) { use(value, innermost_[node]); });
    for (const Operand& output : graph_.outputs)
      for_each_value(output, [&](ValueId value) { use(value, kOutside); });
    size_t next = 0;
    return made(regions, next);
  }

 private:
  static constexpr int kOutside = -1;
  struct Border {
    int around = kOutside;  // the region around this one
    std::set<ValueId> inputs, outputs;
  };

  // Regions get numbers, the outer ones before those inside them.
  void number(const std::vector<RecomputeRegion>& regions, int around, size_t begin, size_t end) {
    for (const RecomputeRegion& region : regions) {
      if (region.begin < begin || region.end <= region.begin || region.end > end)
        fail("{}: the checkpointed calls {} to {} are none of the program, or checkpointed twice",
             program_.origin, region.begin, region.end);
      begin = region.end;
      const auto own = static_cast<int>(borders_.size());
      borders_.push_back({.around = around, .inputs = {}, .outputs = {}});
      for (size_t node = region.begin; node < region.end; ++node) innermost_[node] = own;
      number(region.inside, own, region.begin, region.end);
    }
  }

  bool lies_in(int region, int outer) const {
    while (region != kOutside && region != outer) region = borders_[size_t(region)].around;
    return region == outer;
  }

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
    const int made_in = maker == kNoNode ? kOutside : innermost_[size_t(maker)];
    if (made_in == region) return;
    for (int r = made_in; r != kOutside && !lies_in(region, r); r = borders_[size_t(r)].around)
      borders_[size_t(r)].outputs.insert(value);
    for (int r = region; r != kOutside && !lies_in(made_in, r); r = borders_[size_t(r)].around)
      borders_[size_t(r)].inputs.insert(value);
  }

  std::vector<Code::Region> made(const std::vector<RecomputeRegion>& regions, size_t& next) const {
    std::vector<Code::Region> found;
    for (const RecomputeRegion& region : regions) {
      const Border& border = borders_[next++];
      Code::Region& one = found.emplace_back();
      one.of = region;
      one.of.inside.clear();
      for (const ValueId value : border.inputs)
        (state_.contains(value) ? one.state : one.inputs).push_back(value);
      one.outputs.assign(border.outputs.begin(), border.outputs.end());
      for (const KeptCalls& calls : region.kept) {
        const bool whole_name = calls.op.find("::") != calls.op.npos;
        const Operator* op = registry_.find(whole_name ? calls.op : "aten::" + calls.op);
        if (op) one.kept[op->id] = calls.which;
        // One that a program names by its whole name is called in it, which is said to be not known.
        if (!op && !whole_name)
          fail("--checkpoint: there is no operator '{}' whose results could be kept", calls.op);
      }
      one.inside = made(region.inside, next);
    }
    return found;
  }

  const Program& program_;
  const Graph& graph_;
  const Registry& registry_;
  const DefUse def_use_;
  std::vector<int> innermost_;  // region per node
  std::set<ValueId> state_;
  std::vector<Border> borders_;  // by number
};

}  // namespace

Code make_code(const Program& program, const Graph& graph, const Registry& registry,
               const std::vector<RecomputeRegion>& regions) {
  Code code;
  code.graph = &graph;
  code.instructions.reserve(graph.nodes.size());
  for (const GraphNode& node : graph.nodes)
    code.instructions.push_back(instruction_of(program, graph, node, registry));
  if (!regions.empty()) code.regions = Borders(program, graph, registry).find(regions);
  return code;
}

size_t end_of_backward(const Code& code, size_t backward) {
  if (!calls_follow(code.instructions[backward])) return backward;
  size_t open = 0;
  for (size_t i = backward; i < code.instructions.size(); ++i) {
    open += calls_follow(code.instructions[i]);
    if (code.instructions[i].step == StepCall::backward_leave && --open == 0) return i;
  }
  fail("step::backward: what is called within it has no end");
}

std::vector<RecomputeRegion> regions_of(const Graph& graph) {
  std::vector<RecomputeRegion> regions;
  for (const CheckpointRegion& one : graph.checkpoints)
    regions.push_back({.begin = one.begin,
                       .end = one.end,
                       .reentrant = one.reentrant,
                       .whole = one.whole,
                       .kept = one.kept});
  return regions;
}

}  // namespace metaprof
