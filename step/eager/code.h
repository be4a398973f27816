#pragma once
// Code: a graph made ready to run. Operators are found, and every operand has its place among the operator's
// arguments; what is left to do depends on values.

#include <map>
#include <optional>
#include <vector>

#include "meta/op/registry.h"
#include "program/higher_order.h"
#include "program/step_call.h"
#include "step/eager/recompute_region.h"

namespace metaprof {

/// What is done for one node of the graph.
struct Instruction {
  enum class Kind : uint8_t {
    call,        ///< `op`
    region,      ///< `region`: the graph inside, in some mode
    step,        ///< `step`: what no operator does
    numbers,     ///< results are numbers, which the program knows
    collective,  ///< between ranks: writes to its arguments, or makes what the program says
    out,         ///< writes what `op` makes to tensors that it is given
    unmodelled,  ///< an operator without a record
    nothing,     ///< a check that only exporting runs
  };
  /// Where an operand goes.
  struct Place {
    uint8_t argument = 0;  ///< index among the schema's arguments
    Role role = Role::none;
    bool is_dtype = false;
    bool is_index_list = false;  ///< a list that the source writes, and that indexes the first argument
    bool is_written = false;     ///< of Kind::out: no argument, but what is written
  };

  Kind kind = Kind::unmodelled;
  const GraphNode* node = nullptr;
  const Operator* op = nullptr;
  std::optional<RegionCall> region;
  std::optional<StepCall> step;
  std::vector<Place> places;  ///< per operand of a call
  /// Of a call whose results' sizes may follow from data: what the program says of the first. Else null.
  const TensorFacts* first_result = nullptr;
  bool assumed = false;  ///< … and nobody knows it
};

struct Code {
  /// A region, with what goes in and comes out.
  struct Region {
    RecomputeRegion of;            ///< without those inside it
    std::vector<ValueId> inputs;   ///< made outside, passed to it
    std::vector<ValueId> state;    ///< parameters, buffers and constants, which it reaches by itself
    std::vector<ValueId> outputs;  ///< made inside, used outside
    std::map<uint32_t, std::vector<int>> kept;  ///< RecomputeRegion::kept by the operator's id
    std::vector<Region> inside;
  };

  const Graph* graph = nullptr;  ///< outlives the code
  std::vector<Instruction> instructions;
  std::vector<Region> regions;
};

/// Errors: a call passes an argument that the operator does not have; a region is empty, not within the graph,
/// or reaches into another one; it keeps results of an operator that there is not.
Code make_code(const Program& program, const Graph& graph, const Registry& registry,
               const std::vector<RecomputeRegion>& regions);

/// Where a call of step::backward ends: at itself, or, where calls within it follow, at its backward_leave. Other
/// instructions end at themselves. Errors: that is missing.
size_t end_of_backward(const Code& code, size_t backward);

/// The checkpoints of a graph as regions.
std::vector<RecomputeRegion> regions_of(const Graph& graph);

}  // namespace metaprof
