#include "step/compiled/aot/decompose.h"

#include <array>

namespace metaprof {
namespace {

// Operands by position; those that are passed by name take their place.
template <size_t count>
std::array<Operand, count> by_position(const GraphNode& node,
                                       const std::array<std::string_view, count>& names) {
  std::array<Operand, count> operands;
  size_t position = 0;
  for (const Operand& operand : node.operands) {
    size_t place = position;
    if (operand.name.empty()) {
      ++position;
    } else {
      for (place = 0; place < count && names[place] != operand.name;) ++place;
    }
    if (place >= count) continue;
    operands[place] = operand;
    operands[place].name.clear();
  }
  return operands;
}

bool is_none(const Operand& operand) {
  return operand.kind == Operand::Kind::constant && operand.constant.is_none();
}

bool is_true(const Operand& operand) {
  return operand.kind == Operand::Kind::constant && operand.constant.kind() == Value::Kind::boolean &&
         operand.constant.boolean();
}

bool is_zero(const Operand& operand) {
  return operand.kind == Operand::Kind::constant && operand.constant.is_number() &&
         operand.constant.real() == 0;
}

// decompositions.py: batch_norm chooses cudnn_batch_norm or native_batch_norm, and both become these.
void decompose_batch_norm(GraphNode& node) {
  enum : uint8_t { input, weight, bias, mean, variance, training, momentum, epsilon };
  const auto all = by_position<8>(
      node, {"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"});
  const auto take = [&](std::initializer_list<int> places) {
    node.operands.clear();
    for (const int place : places) node.operands.push_back(all[static_cast<size_t>(place)]);
  };
  if (is_none(all[mean])) {
    node.op = "aten::_native_batch_norm_legit.no_stats";
    take({input, weight, bias, training, momentum, epsilon});
  } else if (is_true(all[training])) {
    node.op = "aten::_native_batch_norm_legit";
    take({input, weight, bias, mean, variance, training, momentum, epsilon});
  } else {
    node.op = "aten::_native_batch_norm_legit_no_training";
    take({input, weight, bias, mean, variance, momentum, epsilon});
  }
  const Target unused{.list = false, .values = {kNoValue}};
  node.targets.resize(1);
  node.targets.insert(node.targets.end(), 2, unused);
}

void decompose_dropout(GraphNode& node, bool gives_input) {
  const auto all = by_position<3>(node, {"input", "p", "train"});
  if (is_true(all[2]) && !is_zero(all[1])) return;
  node.op = gives_input ? "aten::alias" : "aten::clone";
  node.operands = {all[0]};
}

}  // namespace

Program decomposed_for_compiler(Program program, const Framework& framework) {
  for (GraphNode& node : program.graph.nodes) {
    if (node.op == "aten::batch_norm") decompose_batch_norm(node);
    if (node.op == "aten::dropout") decompose_dropout(node, framework.compiled_dropout_gives_input);
  }
  return program;
}

}  // namespace metaprof
