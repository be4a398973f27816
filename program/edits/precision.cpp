// A captured program in another precision: dtypes of what it keeps, and regions of autocast.

#include <algorithm>
#include <map>

#include "core/error.h"
#include "meta/op/registry.h"
#include "program/def_use.h"
#include "program/edits/rewriting.h"
#include "program/edits/variants.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr size_t kNamed = 2;  // operand of step::name

bool copies(const GraphNode& node) { return node.op.starts_with("aten::to.") || node.op == "aten::_to_copy"; }

class PrecisionChange {
 public:
  PrecisionChange(Program& program, const Registry& registry, DType state)
      : program_(program),
        graph_(program.graph),
        registry_(registry),
        state_(state),
        before_(dtype_of_parameters()) {}

  void run() {
    if (before_ == state_) return;
    find();
    for (GraphNode& node : graph_.nodes) change_operands(node);
    for (size_t value = 0; value < changes_.size(); ++value)
      if (changes_[value]) change_maker(static_cast<ValueId>(value));
    place_weights_again(program_, registry_);
  }

 private:
  // That of most elements.
  DType dtype_of_parameters() const {
    std::map<DType, int64_t> elements;
    for (const GraphNode& node : graph_.nodes) {
      if (!is_step(node, "name") || text_operand(node, 0) != "parameter") continue;
      const auto& facts = graph_.values[size_t(node.operands[kNamed].value)].tensor;
      if (facts && is_floating(facts->dtype)) elements[facts->dtype] += numel(facts->sizes);
    }
    if (elements.empty()) fail("--precision: {} has no parameter of floating numbers", program_.origin);
    return std::ranges::max_element(elements, {}, &std::pair<const DType, int64_t>::second)->first;
  }

  // A buffer that is no part of the model's state: the source makes it, in the dtype that it says (step/placement.cpp).
  bool is_computed(const GraphNode& node) const {
    const auto& facts = graph_.values[size_t(node.operands[kNamed].value)].tensor;
    const bool transient = node.operands.size() > kNamed + 1 &&
                           node.operands[kNamed + 1].constant.kind() == Value::Kind::boolean &&
                           !node.operands[kNamed + 1].constant.boolean();
    return transient && facts && !facts->sizes.empty();
  }

  // What becomes of the other dtype: parameters, buffers and inputs, and what belongs to them. What belongs to a buffer
  // that the source computes stays.
  void find() {
    std::vector<ValueId> state, computed;
    for (const GraphNode& node : graph_.nodes) {
      if (!is_step(node, "name") || text_operand(node, 0) == "optimizer_state") continue;
      (is_computed(node) ? computed : state).push_back(node.operands[kNamed].value);
    }
    stays_ = with_what_belongs_to(computed);
    changes_ = with_what_belongs_to(state);
  }

  // Per value: it is one of these, what one was made of, or what takes its place.
  std::vector<char> with_what_belongs_to(const std::vector<ValueId>& values) const {
    std::vector<char> found(graph_.values.size());
    std::vector<ValueId> open;
    const auto add = [&](ValueId value) {
      if (value == kNoValue || found[size_t(value)]) return;
      const auto& facts = graph_.values[size_t(value)].tensor;
      if (!facts || facts->dtype != before_) return;
      found[size_t(value)] = true;
      open.push_back(value);
    };
    for (const ValueId value : values) add(value);
    const DefUse def_use(graph_);
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (const int32_t maker = def_use.maker(value); maker != kNoNode)
        for (const Operand& operand : graph_.nodes[size_t(maker)].operands) add(operand.value);
      for (const int32_t user : def_use.users(value)) {
        const GraphNode& node = graph_.nodes[size_t(user)];
        if (is_step(node, "set_data")) for_each_argument(node, add);
      }
    }
    return found;
  }

  // Index of the argument that an operand is given for; -1: the operator is not known.
  int argument_of(const GraphNode& node, const Operator* op, size_t operand) const {
    if (!op) return -1;
    return op->schema.place_of(node.operands[operand].name, operand);
  }

  bool makes_what_stays(const GraphNode& node) const {
    bool makes = false;
    for_each_result(node, [&](ValueId value) { makes |= stays_[size_t(value)] != 0; });
    return makes;
  }

  void change_operands(GraphNode& node) const {
    if (node.dtype_named || makes_what_stays(node)) return;
    const Operator* op = registry_.find(node.op);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const int at = argument_of(node, op, i);
      Value& constant = node.operands[i].constant;
      if (at < 0) continue;
      if (op->schema.arguments[size_t(at)].type == Type::dtype && constant.kind() == Value::Kind::integer &&
          constant.integer() == static_cast<int64_t>(before_))
        constant = Value(state_);
    }
  }

  // A tensor of the host, or one that a call makes without being told a dtype.
  void change_maker(ValueId value) {
    graph_.values[size_t(value)].tensor->dtype = state_;
    for (GraphNode& node : graph_.nodes) {
      bool makes = false;
      for_each_result(node, [&](ValueId made) { makes |= made == value; });
      if (!makes) continue;
      const Operator* op = registry_.find(node.op);
      const int at = op ? op->schema.find(name_hash("dtype")) : -1;
      if (at < 0 || copies(node)) return;
      for (size_t i = 0; i < node.operands.size(); ++i)
        if (argument_of(node, op, i) == at) return void(node.operands[i].constant = Value(state_));
      Operand& dtype = node.operands.emplace_back();
      dtype.name = "dtype";
      dtype.constant = Value(state_);
      return;
    }
  }

  Program& program_;
  Graph& graph_;
  const Registry& registry_;
  const DType state_, before_;
  std::vector<char> changes_, stays_;  // per value
};

// Regions of autocast that a program enters itself, and where forwards run without one.
class AutocastChange {
 public:
  AutocastChange(Program& program, std::optional<DType> dtype) : graph_(program.graph), dtype_(dtype) {}

  void run() {
    std::vector<GraphNode> nodes;
    std::vector<size_t> place;
    bool in_modules = false, in_forward = false, open = false;
    size_t depth = 0;
    const std::vector<char> covered = forwards_with_region();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      GraphNode& node = graph_.nodes[i];
      if (is_step(node, "phase")) {
        if (open) nodes.push_back(call("step::autocast_leave"));
        in_modules = open = false;
        in_forward = text_operand(node, 0) == "forward";
      }
      in_modules |= node.modules >= 0;
      if (is_step(node, "autocast_enter") && depth++ == 0 && !in_modules) switch_region(node);
      if (is_step(node, "autocast_leave") && depth > 0) --depth;
      place.push_back(nodes.size());
      nodes.push_back(std::move(node));
      if (in_forward && dtype_ && is_step(nodes.back(), "phase") && !covered[i]) {
        nodes.push_back(enter());
        open = true;
      }
    }
    if (open) nodes.push_back(call("step::autocast_leave"));
    place.push_back(nodes.size());
    replace_nodes(graph_, std::move(nodes), place);
  }

 private:
  // Per node: a forward phase begins in which the program enters a region before it calls a module.
  std::vector<char> forwards_with_region() const {
    std::vector<char> covered(graph_.nodes.size());
    std::optional<size_t> forward;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (is_step(node, "phase"))
        forward = text_operand(node, 0) == "forward" ? std::optional(i) : std::nullopt;
      if (forward && is_step(node, "autocast_enter")) covered[*forward] = true;
      if (node.modules >= 0) forward.reset();
    }
    return covered;
  }

  void switch_region(GraphNode& node) const {
    if (node.operands.size() < 2) fail("step::autocast_enter: takes three arguments");
    node.operands[0].constant = Value(dtype_.has_value());
    if (dtype_) node.operands[1].constant = Value(*dtype_);
  }

  static GraphNode call(std::string_view op) {
    GraphNode node;
    node.op = op;
    return node;
  }
  GraphNode enter() const {
    GraphNode node = call("step::autocast_enter");
    node.operands.resize(3);
    node.operands[0].constant = Value(true);
    node.operands[1].constant = Value(*dtype_);
    node.operands[2].constant = Value(true);
    return node;
  }

  Graph& graph_;
  const std::optional<DType> dtype_;
};

}  // namespace

void change_precision(Program& program, const Registry& registry, DType state) {
  PrecisionChange(program, registry, state).run();
}

void change_autocast(Program& program, std::optional<DType> dtype) { AutocastChange(program, dtype).run(); }

}  // namespace metaprof
