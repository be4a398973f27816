#pragma once
// The values that a call takes and makes, one after the other, absent ones (kNoValue) left out. The visitor
// is given a ValueId&, const where the program is.

#include "program/program.h"

namespace metaprof {

/// Values that an operand names, those inside its lists included; not those of a sub-graph.
template <class AnOperand, class Visit>
void for_each_value(AnOperand& operand, Visit visit) {
  if (operand.value != kNoValue) visit(operand.value);
  for (auto& value : operand.values)
    if (value != kNoValue) visit(value);
}

/// Values that a call takes, as often as it takes them.
template <class ANode, class Visit>
void for_each_argument(ANode& node, Visit visit) {
  for (auto& operand : node.operands) for_each_value(operand, visit);
}

/// The first value that a call makes; kNoValue: its program names none.
inline ValueId first_result(const GraphNode& node) {
  return node.targets.empty() || node.targets[0].values.empty() ? kNoValue : node.targets[0].values[0];
}

/// Values that a call makes.
template <class ANode, class Visit>
void for_each_result(ANode& node, Visit visit) {
  for (auto& target : node.targets)
    for (auto& value : target.values)
      if (value != kNoValue) visit(value);
}

}  // namespace metaprof
