#include "program/edits/model_of_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "program/edits/rewriting.h"
#include "program/step_call.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr size_t kNothing = SIZE_MAX;

/// Nodes of the forward, and of the backward behind it.
struct Passes {
  size_t begin = kNothing, end = kNothing, backward = kNothing;
};

// The last forward that a backward follows; of several micro-batches the first one of the step.
Passes passes_of(const Graph& graph) {
  Passes found, open;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const bool first = integer_operand(node, 2, -1) <= 0;
    if (is_step(node, "phase") || is_step(node, "pause")) {
      if (open.end == kNothing) open.end = i;
      if (is_step(node, "phase") && text_operand(node, 0) == "forward")
        open = first ? Passes{.begin = i} : Passes{.end = i};
    }
    if (!is_step(node, "backward") || open.begin == kNothing) continue;
    found = {.begin = open.begin, .end = std::min(open.end, i), .backward = i};
    open = {.end = i};
  }
  return found;
}

class Extraction {
 public:
  explicit Extraction(const Program& captured) : captured_(captured), graph_(captured.graph) {}

  Program run() {
    expect_step_calls(captured_);
    passes_ = passes_of(graph_);
    if (passes_.begin == kNothing) fail("{}: no forward of it is followed by a backward", captured_.origin);
    copy_what_is_not_the_graph();
    for (size_t i = 0; i < passes_.begin; ++i) look_at_setup(graph_.nodes[i]);
    for (const GraphNode& node : graph_.nodes) look_at_gradient(node);
    add_state();
    model_.graph.nodes = open_autocast_;
    for (size_t i = passes_.begin; i < passes_.end; ++i) add(i);
    while (autocast_depth_-- > 0) model_.graph.nodes.emplace_back().op = "step::autocast_leave";
    add_checkpoints();
    add_inputs();
    drop_what_goes();
    add_loss();
    return std::move(model_);
  }

 private:
  void copy_what_is_not_the_graph() {
    model_.name = captured_.name;
    model_.origin = captured_.origin;
    model_.graph.values = graph_.values;
    model_.module_stacks = captured_.module_stacks;
    model_.source_stacks = captured_.source_stacks;
    model_.expressions = captured_.expressions;
    model_.module_types = captured_.module_types;
    model_.modules = captured_.modules;
    model_.warnings = captured_.warnings;
    model_.framework = captured_.framework;
  }

  // Where the setup put a tensor: `w.data = w.to(device)`.
  void look_at_setup(const GraphNode& node) {
    const auto value = [&](size_t operand) {
      return operand < node.operands.size() ? node.operands[operand].value : kNoValue;
    };
    if (is_step(node, "name")) named_.push_back(&node);
    if (is_step(node, "set_data") && value(0) != kNoValue && value(1) != kNoValue) {
      const bool learns = facts(value(0)) && facts(value(0))->requires_grad;
      model_.graph.values[size_t(value(0))].tensor = graph_.values[size_t(value(1))].tensor;
      if (facts(value(0))) facts(value(0))->requires_grad = learns;
    }
    if (is_step(node, "requires_grad") && value(0) != kNoValue && facts(value(0)))
      facts(value(0))->requires_grad = flag_operand(node, 1, facts(value(0))->requires_grad);
    if (is_step(node, "autocast_enter")) open_autocast_.push_back(without_drops(node));
    if (is_step(node, "autocast_leave") && !open_autocast_.empty()) open_autocast_.pop_back();
    autocast_depth_ = static_cast<int>(open_autocast_.size());
  }

  // What has a gradient learns: a shared parameter that the setup moved is a result like others.
  void look_at_gradient(const GraphNode& node) {
    if (!is_step(node, "gradient") || node.operands.empty()) return;
    const ValueId leaf = node.operands[0].value;
    if (leaf != kNoValue && facts(leaf)) facts(leaf)->requires_grad = true;
  }

  static GraphNode without_drops(GraphNode node) {
    node.drops.clear();
    return node;
  }

  std::optional<TensorFacts>& facts(ValueId value) { return model_.graph.values[size_t(value)].tensor; }

  // Parameters and buffers may be named within the forward that first uses them.
  void add_state() {
    for (size_t i = passes_.begin; i < passes_.end; ++i)
      if (is_step(graph_.nodes[i], "name")) named_.push_back(&graph_.nodes[i]);
    for (const GraphNode* node : named_) {
      const std::string purpose = text_operand(*node, 0);
      const ValueId value = node->operands[2].value;
      if (purpose == "input") names_[value] = text_operand(*node, 1);
      if ((purpose != "parameter" && purpose != "buffer") || !taken_.insert(value).second) continue;
      const bool parameter = purpose == "parameter";
      const bool persistent = flag_operand(*node, 3, true);
      add_input(parameter ? ProgramInput::Kind::parameter : ProgramInput::Kind::buffer, value,
                text_operand(*node, 1), persistent);
    }
    if (model_.inputs.empty()) fail("{}: it names no parameter", captured_.origin);
  }

  void add_input(ProgramInput::Kind kind, ValueId value, std::string name, bool persistent = true) {
    model_.graph.inputs.push_back(value);
    ProgramInput& input = model_.inputs.emplace_back();
    input.kind = kind;
    input.value = value;
    input.name = std::move(name);
    input.persistent = persistent;
  }

  void add(size_t i) {
    const GraphNode& node = graph_.nodes[i];
    place_.push_back(model_.graph.nodes.size());
    if (!belongs_to_forward(node)) return;
    if (is_step(node, "autocast_enter")) ++autocast_depth_;
    if (is_step(node, "autocast_leave")) --autocast_depth_;
    for_each_result(node, [&](ValueId value) { made_.insert(value); });
    model_.graph.nodes.push_back(node);
  }

  // Names are the inputs' own, and gradients are set to None before the backward in any case.
  bool belongs_to_forward(const GraphNode& node) const {
    const auto step = step_call(node.op);
    if (!step) return true;
    switch (*step) {
      case StepCall::phase:
      case StepCall::pause:
      case StepCall::name:
      case StepCall::set_gradient:
      case StepCall::optimizer_enter:
      case StepCall::optimizer_leave: return false;
      case StepCall::keep:
      case StepCall::alias:
      case StepCall::tensor:
      case StepCall::grad_mode:
      case StepCall::inference_mode:
      case StepCall::attention:
      case StepCall::engine_thread:
      case StepCall::nodes:
      case StepCall::autocast_enter:
      case StepCall::autocast_leave:
      case StepCall::requires_grad:
      case StepCall::function_enter:
      case StepCall::function_leave:
      case StepCall::keep_versions_enter:
      case StepCall::keep_versions_leave:
      case StepCall::saved_on_host_enter:
      case StepCall::saved_on_host_leave: return true;
      default:
        fail("{}: its forward calls {}, which belongs to the whole step: its model cannot be looked at alone",
             captured_.origin, call_text(captured_, node));
    }
  }

  void add_checkpoints() {
    place_.push_back(model_.graph.nodes.size());
    for (CheckpointRegion region : graph_.checkpoints) {
      if (region.begin < passes_.begin || region.end > passes_.end) continue;
      region.begin = place_[region.begin - passes_.begin];
      region.end = place_[region.end - passes_.begin];
      if (region.begin < region.end) model_.graph.checkpoints.push_back(region);
    }
  }

  // What was there before, and is no part of the model's state.
  void add_inputs() {
    for (const GraphNode& node : model_.graph.nodes)
      for_each_argument(node, [&](ValueId value) {
        if (made_.contains(value) || !taken_.insert(value).second) return;
        const auto known = names_.find(value);
        add_input(ProgramInput::Kind::user, value,
                  known != names_.end() ? known->second : fmt::format("input_{}", ++inputs_));
      });
  }

  // Inputs are the caller's, and what went before was made before.
  void drop_what_goes() {
    for (GraphNode& node : model_.graph.nodes)
      std::erase_if(node.drops, [&](ValueId value) { return !made_.contains(value); });
  }

  void add_loss() {
    const GraphNode& backward = graph_.nodes[passes_.backward];
    const Operand* roots = backward.operands.empty() ? nullptr : &backward.operands[0];
    if (roots == nullptr || roots->values.size() != 1 || !made_.contains(roots->values[0]))
      fail("{}: its backward does not begin with one loss that its forward has made", captured_.origin);
    Operand loss;
    loss.kind = Operand::Kind::value;
    loss.value = roots->values[0];
    model_.graph.outputs.push_back(loss);
    model_.outputs.push_back({.kind = ProgramOutput::Kind::loss, .operand = loss, .name = "loss"});
  }

  const Program& captured_;
  const Graph& graph_;
  Passes passes_;
  Program model_;
  std::vector<const GraphNode*> named_;
  std::map<ValueId, std::string> names_;  // of inputs
  std::set<ValueId> taken_, made_;        // inputs; results of the forward
  std::vector<size_t> place_;             // per node of the forward: where it stands now
  std::vector<GraphNode> open_autocast_;  // regions that enclose the forward
  int autocast_depth_ = 0;
  int inputs_ = 0;
};

}  // namespace

Program model_of_steps(const Program& captured) { return Extraction(captured).run(); }

}  // namespace metaprof
