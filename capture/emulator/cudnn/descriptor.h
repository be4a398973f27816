#pragma once
// What a descriptor of cuDNN's backend (graph) API keeps. Names of attributes and kinds of descriptors are cuDNN's numbers
// (cudnn_graph.h).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace metaprof::emulator::cudnn {

enum AttributeType : int {
  boolean = 2,
  integers = 3,
  doubles = 5,
  pointer = 6,
  handle = 0,
  descriptors = 15,
  text = 24,
  fraction = 26
};

enum Kind : int {
  engine = 2,
  engine_configuration = 3,
  execution_plan = 5,
  convolution_forward = 10,
  convolution_weight_gradient = 11,
  convolution_data_gradient = 12
};

struct Node;

struct Attribute {
  int name = 0, type = 0;
  int64_t count = 0;
  std::string bytes;  ///< the values as they were set
  std::vector<std::shared_ptr<Node>>
      nodes;  ///< the descriptors, if it names descriptors: they outlive their handles
};

/// What a plan takes: of an engine, a configuration or a plan.
struct Plan {
  int64_t workspace = 0;        ///< bytes
  double moved = 0, flops = 0;  ///< bytes of its operands; 2 per multiply-add
  int element_bytes = 4;
  int skipped =
      0;  ///< plans with more workspace that are tried before this one, which is asked for when it is made
  std::string question = {};  ///< of such a plan, in the helper's words
};

struct Node {
  int kind = 0;
  std::vector<Attribute> attributes = {};
  Plan plan = {};

  const Attribute* find(int name) const;
  /// The descriptor that an attribute names; null: none, or more than one.
  const Node* node(int name) const;
  /// The integers of an attribute; empty if it is not set.
  std::vector<int64_t> numbers(int name) const;
  /// The one value of an attribute; -1 if it is not set.
  int64_t number(int name) const;
};

/// Bytes of one value of a type.
size_t size_of(int type);

}  // namespace metaprof::emulator::cudnn
