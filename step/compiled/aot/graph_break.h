#pragma once
// Where the framework's compiler leaves a program to Python. It does not look into recurrent networks: it compiles
// what a function does before it calls one, lets Python make the call, and compiles what the function does behind it.
// Functions that Python calls are compiled by themselves, except the framework's own (torch/_dynamo/variables/builder.py,
// symbolic_convert.py, trace_rules.py; pieces compared with those that 2.11 and 2.15 compiled).

#include <string>

#include "meta/platform/framework.h"
#include "program/program.h"

namespace metaprof {

/// Consecutive calls of a program that are compiled together, or that Python makes.
struct ProgramPart {
  size_t begin = 0, end = 0;  ///< nodes
  bool compiled = true;
  /// The lines of code that make the calls, from the function on which is compiled. A function that is called again
  /// is compiled once.
  std::string code;
};

/// Then source lines decide where the program is cut.
bool calls_recurrent_network(const Program& program);

/// All calls, in order. One compiled part: nothing is left to Python. Functions are told apart by the source lines and
/// modules of calls; a call whose line does not name the module is one of a loop.
std::vector<ProgramPart> compiled_parts(const Program& program, const Framework& framework);

/// Values that calls before `begin` make, and that calls from `begin` to `end` take.
std::vector<ValueId> handed_to(const Program& program, size_t begin, size_t end);

/// Values that calls from `begin` to `end` make, and that calls behind them take, and the loss.
std::vector<ValueId> handed_on(const Program& program, size_t begin, size_t end);

/// What a part that Python runs returns: values that its calls make and that it does not let go of; of one that is the
/// call of a recurrent network all.
std::vector<ValueId> held_results(const Program& program, const ProgramPart& part);

/// The calls of the part, with these outputs. Its inputs are the program's, and behind them `values`; of
/// tensors the ones that require grad are parameters.
Program part_of(const Program& program, const ProgramPart& part, const std::vector<ValueId>& values,
                const std::vector<Value>& given, const std::vector<ValueId>& outputs);

}  // namespace metaprof
