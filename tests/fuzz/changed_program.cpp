#include "tests/fuzz/changed_program.h"

#include "meta/ops/all.h"
#include "program/visit.h"
#include "tests/fuzz/random_values.h"

namespace metaprof {
namespace {

class Changer {
 public:
  Changer(Program& program, Random& random) : program_(program), graph_(program.graph), random_(random) {}

  void change() {
    switch (random_.below(12)) {
      case 0:
      case 1: return change_input();
      case 2: return change_facts();
      case 3: return change_operator();
      case 4: return change_count_of_operands();
      case 5: return change_structure();
      case 6: return change_results();
      default: return change_operand();
    }
  }

 private:
  GraphNode* any_node() {
    return graph_.nodes.empty() ? nullptr : &graph_.nodes[random_.below(graph_.nodes.size())];
  }

  // Values that exist when this node is called.
  std::vector<ValueId> known_before(const GraphNode& end) const {
    std::vector<bool> is_dropped(graph_.values.size());
    std::vector<ValueId> known;
    for (const ValueId input : graph_.inputs)
      if (input != kNoValue) known.push_back(input);
    for (const GraphNode& node : graph_.nodes) {
      if (&node == &end) break;
      for_each_result(node, [&](ValueId value) { known.push_back(value); });
      for (const ValueId value : node.drops) is_dropped[size_t(value)] = true;
    }
    std::erase_if(known, [&](ValueId value) { return is_dropped[size_t(value)]; });
    return known;
  }

  static Operand with_values(Operand operand, const std::vector<ValueId>& known) {
    if (operand.value != kNoValue) operand.value = known[size_t(operand.value)];
    for (ValueId& value : operand.values)
      if (value != kNoValue) value = known[size_t(value)];
    return operand;
  }

  void change_operand() {
    GraphNode* node = any_node();
    if (!node || node->operands.empty()) return;
    const size_t at = random_.below(node->operands.size());
    Operand& operand = node->operands[at];
    if (change_number(operand)) return;
    const std::vector<ValueId> known = known_before(*node);
    const Argument* argument = argument_of(*node, at);
    Operand other = argument && !random_.once_in(3) ? operand_for(random_, *argument, known.size())
                                                    : random_operand(random_, known.size());
    other = with_values(std::move(other), known);
    other.name = operand.name;
    operand = std::move(other);
  }

  // An integer, or one of a list: near to what it was, or not.
  bool change_number(Operand& operand) {
    if (operand.kind != Operand::Kind::constant || random_.once_in(3)) return false;
    const auto other = [&](int64_t number) {
      if (random_.once_in(2)) return random_integer(random_);
      const int64_t step = random_.one_of({-1, 1});
      return number < INT64_MAX && number > INT64_MIN ? number + step : number;
    };
    if (operand.constant.kind() == Value::Kind::integer) {
      operand.constant = Value(other(operand.constant.integer()));
      return true;
    }
    if (operand.constant.kind() != Value::Kind::integers) return false;
    Sizes integers = operand.constant.integers();
    if (integers.empty()) return false;
    int64_t& one = integers[random_.below(integers.size())];
    one = other(one);
    operand.constant = Value(integers);
    return true;
  }

  static const Argument* argument_of(const GraphNode& node, size_t at) {
    const Operator* op = standard_registry().find(node.op);
    if (!op) return nullptr;
    const std::string& name = node.operands[at].name;
    const int index = name.empty() ? static_cast<int>(at) : op->schema.find(name_hash(name));
    return index >= 0 && size_t(index) < op->schema.arguments.size() ? &op->schema.arguments[size_t(index)]
                                                                     : nullptr;
  }

  void change_facts_of(ValueId value) {
    std::optional<TensorFacts>& tensor = graph_.values[size_t(value)].tensor;
    if (!tensor) return;
    switch (random_.below(5)) {
      case 0: {
        const bool grad = tensor->requires_grad;
        tensor = random_tensor(random_);
        tensor->requires_grad = grad && is_differentiable(tensor->dtype);
        return;
      }
      case 1:
        tensor->dtype = random_tensor(random_).dtype;
        tensor->requires_grad = tensor->requires_grad && is_differentiable(tensor->dtype);
        return;
      case 2: tensor->device = random_.once_in(2) ? std::optional(kHost) : std::nullopt; return;
      default: change_size(*tensor);
    }
  }

  void change_size(TensorFacts& tensor) {
    Sizes& sizes = tensor.sizes;
    static const std::vector<int64_t> kSizes{0, 1, 2, 3, 5, 7, 1000, 65537};
    if (sizes.empty() || random_.once_in(5)) {
      sizes.push_back(random_.one_of(kSizes));
    } else if (random_.once_in(5)) {
      sizes.resize(sizes.size() - 1);
    } else {
      sizes[random_.below(sizes.size())] = random_.one_of(kSizes);
    }
    tensor.strides = contiguous_strides(sizes);
    tensor.size_expressions.clear();
    tensor.stride_expressions.clear();
  }

  void change_input() {
    if (graph_.inputs.empty()) return change_facts();  // a captured program makes its tensors by calls
    const ValueId value = random_.one_of(graph_.inputs);
    if (value != kNoValue) change_facts_of(value);
  }

  void change_facts() {
    if (graph_.values.empty()) return;
    const auto value = static_cast<ValueId>(random_.below(graph_.values.size()));
    ValueFacts& facts = graph_.values[size_t(value)];
    if (facts.number && facts.number_expression < 0) facts.number = random_integer(random_);
    change_facts_of(value);
  }

  // That of another call, or any.
  void change_operator() {
    GraphNode *node = any_node(), *other = any_node();
    if (!node) return;
    const auto& operators = standard_registry().operators();
    node->op = random_.once_in(2) ? other->op : operators[random_.below(operators.size())]->name;
  }

  void change_count_of_operands() {
    GraphNode* node = any_node();
    if (!node) return;
    auto& operands = node->operands;
    if (operands.empty() || random_.once_in(3)) {
      const std::vector<ValueId> known = known_before(*node);
      Operand operand = with_values(random_operand(random_, known.size()), known);
      if (!operands.empty()) operand.name = operands.back().name.empty() ? "" : "another";
      operands.push_back(std::move(operand));
    } else if (random_.once_in(2)) {
      operands.pop_back();
    } else {
      std::swap(operands[random_.below(operands.size())], operands[random_.below(operands.size())]);
    }
  }

  // When values go, what is computed again, the mode.
  void change_structure() {
    switch (random_.below(4)) {
      case 0:
        if (GraphNode* node = any_node()) node->drops.clear();
        return;
      case 1:
        if (!graph_.checkpoints.empty() || graph_.nodes.empty()) return graph_.checkpoints.clear();
        graph_.checkpoints.push_back(
            {random_.below(graph_.nodes.size()), graph_.nodes.size(), random_.once_in(2)});
        return;
      case 2: program_.training = !program_.training; return;
      default:
        if (GraphNode* node = any_node()) node->dtype_named = !node->dtype_named;
    }
  }

  // A result that nobody wants, or that is not known.
  void change_results() {
    GraphNode* node = any_node();
    if (!node || node->targets.empty()) return;
    Target& target = node->targets[random_.below(node->targets.size())];
    if (random_.once_in(2)) target.list = !target.list && target.values.size() == 1;
    for_each_result(*node, [&](ValueId value) {
      if (random_.once_in(2)) graph_.values[size_t(value)].tensor.reset();
    });
  }

  Program& program_;
  Graph& graph_;
  Random& random_;
};

}  // namespace

Program changed_program(Program program, Random& random) {
  Changer changer(program, random);
  for (size_t i = random.once_in(3) ? 2 + random.below(3) : 1; i > 0; --i) changer.change();
  return program;
}

}  // namespace metaprof
