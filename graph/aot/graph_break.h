#pragma once
// Where the framework's compiler leaves a program to Python. It does not look into recurrent networks: the function
// that uses one runs eagerly as a whole, and the function that called that one is compiled again from there on
// (torch/_dynamo/variables/builder.py, symbolic_convert.py; recorded with 2.11).

#include <string>

#include "meta/platform/framework.h"
#include "meta/program/program.h"

namespace metaprof {

struct GraphBreak {
  size_t resumes = 0;        ///< the first node that is compiled; those before it run eagerly
  std::string not_modelled;  ///< why the program is cut in another way; empty: it is cut there, or not at all
};
/// Found from the source lines of calls.
GraphBreak graph_break(const Program& program, const Framework& framework);

/// Values that calls before `node` make, and calls from it on, or the outputs, take.
std::vector<ValueId> handed_on(const Program& program, size_t node);

/// The calls before `node`, with these outputs.
Program part_before(const Program& program, size_t node, const std::vector<ValueId>& outputs);

/// The calls from `node` on. Its inputs are the program's, and behind them those values; of tensors the ones that
/// require grad are parameters.
Program part_from(const Program& program, size_t node, const std::vector<ValueId>& values,
                  const std::vector<Value>& given);

}  // namespace metaprof
