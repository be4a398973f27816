// Checkpointed modules: which steps belong to a module's forward, what it takes and gives, and running them
// again.

#include <fnmatch.h>

#include <set>

#include "core/error.h"
#include "meta/autograd/checkpoint.h"
#include "meta/run/interpreter.h"
#include "meta/run/prepared.h"

namespace metaprof {
namespace {

std::vector<std::string> segments(const std::string& path) {
  std::vector<std::string> out(1);
  for (char c : path) {
    if (c == '.') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// Wildcards do not reach over dots: "layers.*" is the layers, not what is inside them.
bool path_matches(const std::string& path, const std::string& pattern) {
  const auto a = segments(path), b = segments(pattern);
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (fnmatch(b[i].c_str(), a[i].c_str(), 0) != 0) return false;
  return true;
}

template <class Visit>
void visit_values(const Operand& operand, const Visit& visit) {
  if (operand.kind == Operand::Kind::value) visit(operand.value);
  for (ValueId value : operand.values)
    if (value != kNoValue) visit(value);
}

}  // namespace

// The outermost matching module that encloses a node: its depth (from 1) and key; 0 if there is none.
std::pair<size_t, std::string> Interpreter::region_at(const GraphNode& node) const {
  if (node.modules < 0) return {};
  const auto& stack = program_.module_stacks[size_t(node.modules)];
  for (size_t i = 0; i < stack.size(); ++i)
    if (path_matches(stack[i].path, options_.checkpoint)) return {i + 1, stack[i].key};
  return {};
}

void Interpreter::prepare_regions(Prepared& prepared) {
  const Graph& graph = *prepared.graph;
  std::vector<int> region_of(graph.nodes.size(), -1), producer(graph.values.size(), -1);
  std::pair<size_t, std::string> current;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    auto here = region_at(graph.nodes[i]);
    if (here.first && (i == 0 || here != current))
      prepared.regions.push_back({.begin = i, .end = i, .inputs = {}, .state = {}, .outputs = {}});
    current = here;
    if (!here.first) continue;
    region_of[i] = static_cast<int>(prepared.regions.size()) - 1;
    prepared.regions.back().end = i + 1;
  }
  if (prepared.regions.empty())
    fail("--checkpoint: no module of {} matches '{}'", program_.name, options_.checkpoint);
  std::set<ValueId> state;
  for (const ProgramInput& input : program_.inputs)
    if (input.kind != ProgramInput::Kind::user) state.insert(input.value);
  std::vector<std::set<ValueId>> inputs(prepared.regions.size()), outputs(prepared.regions.size());
  auto use = [&](ValueId value, int region) {
    const int made_in = producer[size_t(value)] < 0 ? -1 : region_of[size_t(producer[size_t(value)])];
    if (made_in == region) return;
    if (made_in >= 0) outputs[size_t(made_in)].insert(value);
    if (region >= 0) inputs[size_t(region)].insert(value);
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Operand& operand : graph.nodes[i].operands)
      visit_values(operand, [&](ValueId value) { use(value, region_of[i]); });
    for (const Target& target : graph.nodes[i].targets)
      for (ValueId value : target.values)
        if (value != kNoValue) producer[size_t(value)] = static_cast<int>(i);
  }
  for (const Operand& output : graph.outputs) visit_values(output, [&](ValueId value) { use(value, -1); });
  for (size_t r = 0; r < prepared.regions.size(); ++r) {
    Region& region = prepared.regions[r];
    for (ValueId value : inputs[r]) (state.count(value) ? region.state : region.inputs).push_back(value);
    region.outputs.assign(outputs[r].begin(), outputs[r].end());
  }
}

// The region's steps on values of its own.
std::vector<Value> Interpreter::run_again(const Prepared& prepared, const Region& region,
                                          std::vector<Value> values) {
  // A region that is computed again enters its modules again; whatever stops it, they are left.
  struct Restore {
    Interpreter& interpreter;
    int32_t before;
    ~Restore() { interpreter.move_to_modules(before); }
  } restore{*this, modules_};
  run_steps(prepared, region.begin, region.end, values);
  std::vector<Value> outputs;
  for (ValueId output : region.outputs) outputs.push_back(std::move(values[size_t(output)]));
  return outputs;
}

void Interpreter::run_region(const Prepared& prepared, const Region& region, std::vector<Value>& values) {
  std::vector<Value> state(values.size()), inputs;
  for (ValueId value : region.state) state[size_t(value)] = values[size_t(value)];
  for (ValueId value : region.inputs) inputs.push_back(values[size_t(value)]);
  auto body = [this, &prepared, &region, state](const std::vector<Value>& given) {
    std::vector<Value> own = state;
    for (size_t i = 0; i < given.size(); ++i) own[size_t(region.inputs[i])] = given[i];
    return run_again(prepared, region, std::move(own));
  };
  std::vector<Value> outputs =
      checkpoint(session_, body, inputs, {.reentrant = options_.checkpoint_reentrant});
  for (size_t i = 0; i < outputs.size(); ++i) values[size_t(region.outputs[i])] = std::move(outputs[i]);
  for (size_t i = region.begin; i < region.end; ++i)
    for (ValueId value : prepared.steps[i].dropped) values[size_t(value)] = Value();
}

}  // namespace metaprof
