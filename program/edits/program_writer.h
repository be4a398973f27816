#pragma once
// Calls, parameters and modules that are added to a program that is already written down.

#include <memory>
#include <string>
#include <vector>

#include "program/program.h"

namespace metaprof {

class ProgramWriter {
 public:
  explicit ProgramWriter(Program& program)
      : behind(program.graph.nodes.size()), removed(program.graph.nodes.size()), program_(program) {}

  std::vector<std::vector<GraphNode>> behind;  ///< per node of the program: calls that come after it
  std::vector<char> removed;                   ///< … and whether it goes

  /// Takes from the last node of a call of a module what its caller holds until the call returns: values that go there
  /// and that the call has not made itself.
  std::vector<ValueId> take_held_by_caller(size_t begin, size_t end);

  /// State of a module, which the program gets behind its other inputs.
  ValueId add_state(ProgramInput::Kind kind, const std::string& name, Sizes sizes, DType dtype, bool trains,
                    bool own_dtype);
  /// A module behind the last one that was added behind `after`.
  void add_module(const std::string& after, const std::string& path, const std::string& type);
  /// The stack of a module that is called within the innermost one of another stack.
  int32_t stack_within(int32_t stack, const std::string& path, const std::string& type);

  /// A value of these facts.
  ValueId value(const TensorFacts& facts);
  const TensorFacts& facts(ValueId value) const;

  /// The program gets the modules and calls; checkpointed regions follow.
  void finish();

 private:
  void finish_modules();

  Program& program_;
  std::vector<std::pair<std::string, std::string>> modules_;  // (after, path)
};

/// A value as an argument, and a constant.
Operand operand_of(ValueId value, std::string name = {});
Operand operand_of(Value constant, std::string name = {});
/// A list of values, and a graph.
Operand operand_of(std::vector<ValueId> values);
Operand operand_of(std::shared_ptr<const Graph> graph);
/// A call of one result.
GraphNode call_of(std::string op, std::vector<Operand> operands, ValueId result, int32_t modules,
                  int32_t source);

}  // namespace metaprof
