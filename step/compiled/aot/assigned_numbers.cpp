#include "step/compiled/aot/assigned_numbers.h"

#include <algorithm>
#include <set>

#include "program/visit.h"

namespace metaprof {
namespace {

class Assignments {
 public:
  explicit Assignments(Program program) : program_(std::move(program)) {
    for (size_t i = 0; i < nodes().size(); ++i)
      for_each_result(nodes()[i], [&](ValueId value) { makers_[value] = i; });
  }

  Program run(bool as_numbers) {
    for (GraphNode& node : nodes()) rewrite(node);
    if (as_numbers) {
      remove_unused_numbers();
    } else {
      for (const size_t number : numbers_)
        for_each_result(nodes()[number], [&](ValueId value) {
          if (auto& facts = program_.graph.values[static_cast<size_t>(value)].tensor) facts->device = kHost;
        });
    }
    return std::move(program_);
  }

 private:
  std::vector<GraphNode>& nodes() { return program_.graph.nodes; }

  // Unless the source calls the operator itself. It may also name no more than who makes the assignment.
  bool assigns(const GraphNode& node) const {
    if (node.source < 0) return false;
    const std::string& code = program_.source_stacks[static_cast<size_t>(node.source)].back().code;
    return code.find("fill_") == std::string::npos && code.find("copy_") == std::string::npos;
  }

  static ValueId operand(const GraphNode& node, size_t i) {
    return i < node.operands.size() ? node.operands[i].value : kNoValue;
  }

  // The call that makes the number of which a value is a view.
  std::optional<size_t> number_of(ValueId value) {
    for (auto made = makers_.find(value); made != makers_.end(); made = makers_.find(value)) {
      const GraphNode& node = nodes()[made->second];
      if (node.op == "aten::scalar_tensor" || node.op == "aten::lift_fresh_copy") return made->second;
      if (node.op != "aten::view" && node.op != "aten::expand") return std::nullopt;
      value = operand(node, 0);
    }
    return std::nullopt;
  }

  void rewrite(GraphNode& node) {
    if ((node.op != "aten::copy_" && node.op != "aten::fill_.Tensor") || !assigns(node)) return;
    const std::optional<size_t> number = number_of(operand(node, 1));
    if (!number) return;
    numbers_.insert(*number);
    node.op = "aten::fill_.Scalar";
    node.operands.resize(2);
    node.operands[1] = {};
    node.operands[1].constant = Value(0.0);  // whichever: nobody computes with it
  }

  // Numbers, views of them, and the constants that they were.
  void remove_unused_numbers() {
    for (bool removed = true; removed;) {
      std::set<ValueId> used;
      for (const GraphNode& node : nodes())
        for_each_argument(node, [&](ValueId value) { used.insert(value); });
      const auto is_unused = [&](const GraphNode& node) {
        bool wanted = false;
        for_each_result(node, [&](ValueId value) { wanted |= used.contains(value); });
        return !wanted && (node.op == "aten::scalar_tensor" || node.op == "aten::lift_fresh_copy" ||
                           node.op == "aten::view" || node.op == "aten::expand");
      };
      removed = std::erase_if(nodes(), is_unused) > 0;
      if (!removed) forget_unused_constants(used);
    }
  }

  void forget_unused_constants(const std::set<ValueId>& used) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      ProgramInput& input = program_.inputs[i];
      if (input.kind != ProgramInput::Kind::constant_tensor || used.contains(input.value)) continue;
      input.kind = ProgramInput::Kind::constant;
      input.value = program_.graph.inputs[i] = kNoValue;
    }
  }

  Program program_;
  std::map<ValueId, size_t> makers_;
  std::set<size_t> numbers_;
};

}  // namespace

Program with_assigned_numbers(Program program, const Framework& framework) {
  return Assignments(std::move(program)).run(framework.traces_assigned_numbers);
}

}  // namespace metaprof
