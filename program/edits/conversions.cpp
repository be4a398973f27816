// Conversions that changed nothing when a program was captured: x.to(torch.float32) of a tensor in 32 bits is x itself.
//
// One Python object then stood for what would be two in another precision, and each use of it is written as one of the
// result. Whose use it is follows from where it stands (as docs/explanation/lifetimes.md says of exports): a dtype that the source
// names is for the module that converts, so that uses outside its call are uses of the argument, and the result goes
// when the call returns; a dtype taken from a tensor is for who called the module, so that the result goes on and the
// argument goes when the call returns.

#include <algorithm>

#include "program/def_use.h"
#include "program/edits/variants.h"
#include "program/visit.h"

namespace metaprof {
namespace {

class Conversions {
 public:
  explicit Conversions(Program& program)
      : program_(program), graph_(program.graph), def_use_(graph_), dropped_(graph_.values.size(), kNoNode) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const ValueId value : graph_.nodes[i].drops) dropped_[size_t(value)] = static_cast<int32_t>(i);
  }

  void part() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (changed_nothing(graph_.nodes[i])) part(i);
  }

 private:
  bool changed_nothing(const GraphNode& node) const {
    if (!node.op.starts_with("aten::to.") || node.modules < 0 || node.operands.empty()) return false;
    const auto copies = [](const Operand& operand) {
      return operand.constant.kind() == Value::Kind::boolean && operand.constant.boolean();
    };
    if (std::ranges::any_of(node.operands, copies)) return false;
    const ValueId argument = node.operands[0].value;
    if (argument == kNoValue || node.targets.size() != 1 || node.targets[0].values.size() != 1) return false;
    const ValueId result = node.targets[0].values[0];
    if (result == kNoValue) return false;
    const auto& before = graph_.values[size_t(argument)].tensor;
    const auto& after = graph_.values[size_t(result)].tensor;
    return before && after && before->dtype == after->dtype && before->device == after->device &&
           std::ranges::equal(before->sizes, after->sizes) &&
           std::ranges::equal(before->strides, after->strides);
  }

  bool within(const GraphNode& node, const std::vector<ModuleCall>& call) const {
    if (node.modules < 0) return false;
    const auto& modules = program_.module_stacks[size_t(node.modules)];
    return modules.size() >= call.size() && std::equal(call.begin(), call.end(), modules.begin());
  }

  // The last call of the module's call in which this one stands.
  int32_t end_of_call(size_t node) const {
    const auto& call = program_.module_stacks[size_t(graph_.nodes[node].modules)];
    size_t end = node;
    for (size_t i = node + 1; i < graph_.nodes.size(); ++i) {
      if (within(graph_.nodes[i], call))
        end = i;
      else if (graph_.nodes[i].modules >= 0)
        break;
    }
    return static_cast<int32_t>(end);
  }

  void part(size_t node) {
    const ValueId argument = graph_.nodes[node].operands[0].value,
                  result = graph_.nodes[node].targets[0].values[0];
    const int32_t end = end_of_call(node);
    if (!graph_.nodes[node].dtype_named) {
      const auto users = def_use_.users(argument);
      if (users.back() <= end) goes_at(argument, end);
      return;
    }
    for (const int32_t user : def_use_.users(result))
      if (user > end)
        for_each_argument(graph_.nodes[size_t(user)], [&](ValueId& value) {
          if (value == result) value = argument;
        });
    goes_at(result, end);
  }

  void goes_at(ValueId value, int32_t end) {
    int32_t& at = dropped_[size_t(value)];
    if (at != kNoNode && at <= end) return;
    if (at != kNoNode) std::erase(graph_.nodes[size_t(at)].drops, value);
    graph_.nodes[size_t(end)].drops.push_back(value);
    at = end;
  }

  Program& program_;
  Graph& graph_;
  const DefUse def_use_;
  std::vector<int32_t> dropped_;  // per value: the call behind which it goes
};

}  // namespace

void part_conversions(Program& program) { Conversions(program).part(); }

}  // namespace metaprof
