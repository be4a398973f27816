#pragma once
// Which inputs of a program it writes to: found from operators' schemas and from which values look into the same
// memory (views, lists of views, results that are an argument).

#include <cstddef>
#include <vector>

namespace metaprof {

class Registry;
struct GraphNode;
struct Program;

/// A call that writes to an input of the program.
struct Mutation {
  size_t input = 0;                 ///< index into Program::inputs
  const GraphNode* node = nullptr;  ///< the first that does
};

/// In the order of inputs; each once. Operators that are not known write to nothing.
std::vector<Mutation> input_mutations(const Program& program, const Registry& registry);

}  // namespace metaprof
