#pragma once
// Code: a graph made ready to run. Values have places in a frame, operators are found, and it is known where each
// value is used last, so that it goes there. Code belongs to no session: threads may run it at once.

#include <memory>
#include <vector>

#include "meta/session/session.h"
#include "step/compiled/ir/graph.h"
#include "step/compiled/ir/numbers.h"

namespace metaprof::ir {

/// What runs a node that holds a graph.
class NodeCode {
 public:
  virtual ~NodeCode() = default;
  /// Takes the node's inputs and returns its outputs.
  virtual std::vector<metaprof::Value> run(Session& session, std::vector<metaprof::Value> inputs) const = 0;
};

/// A value that an instruction takes.
struct Operand {
  int32_t place = 0;     ///< in the frame; negative: constant -1 - place
  bool is_last = false;  ///< nobody takes the value after this
};

/// Consecutive instructions that are run together: of a block.
struct Body {
  size_t begin = 0, end = 0;    ///< indices of instructions; those of inner blocks stand elsewhere
  std::vector<int32_t> inputs;  ///< places of the block's inputs
  std::vector<Operand> outputs;
};

struct Instruction {
  Kind kind = Kind::call;
  const Node* node = nullptr;
  const Operator* op = nullptr;  ///< of a call, and of what belongs to one
  const NumberOp* number = nullptr;
  std::vector<Operand> inputs;
  std::vector<int32_t> outputs;  ///< places; -1: nobody takes it
  std::vector<int32_t> frees;    ///< places that are used for the last time inside the blocks
  std::vector<Body> bodies;
  int32_t scope = -1;                     ///< index into Code::scopes
  std::shared_ptr<const NodeCode> inner;  ///< of a differentiable graph or a fused kernel
};

/// Made by make_code (make_code.h), then never changed.
struct Code {
  std::shared_ptr<const Graph> graph;
  std::vector<Instruction> instructions;
  std::vector<Constant> constants;
  std::vector<std::string> scopes;
  Body body;
  size_t places = 0;
};

}  // namespace metaprof::ir
