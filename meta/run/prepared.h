#pragma once
// A graph made ready to run: the interpreter's own.

#include "meta/run/interpreter.h"

namespace metaprof {

struct Interpreter::Step {
  const GraphNode* node = nullptr;
  const Operator* op = nullptr;  // null: higher-order, symbolic or unmodelled
  std::vector<int> argument;     // per operand: index of the schema's argument
  bool symbolic = false;         // results are numbers that the program's record has
  bool higher_order = false;
  bool without_autocast = false;  // whatever the mode (dtypes.h)
  struct IndexList {
    size_t argument, position;
  };
  std::vector<IndexList> index_lists;  // lists of numbers that index (constants.h)
  ValueId dtype_of = kNoValue;         // its dtype argument was taken from this value (dtypes.h)
  std::vector<ValueId> dropped;        // values that nobody holds after this step
};

struct Interpreter::Region {
  size_t begin, end;             // steps
  std::vector<ValueId> inputs;   // made outside, passed to the module
  std::vector<ValueId> state;    // parameters and buffers, which it reaches by itself
  std::vector<ValueId> outputs;  // made inside, used outside
};

struct Interpreter::Prepared {
  std::optional<Graph> corrected;  // where exporting took one tensor for another (conversions.h)
  const Graph* graph;              // that, or the program's own
  std::vector<Step> steps;
  std::vector<Region> regions;
};

}  // namespace metaprof
