#pragma once
// The graph that passes rewrite and the executor runs: values, nodes, and blocks of nodes. Blocks are bodies: of
// the graph, of the branches of an If, of a Loop. A node may hold whole graphs as attributes.
//
// A value is made by one node and knows its uses. A block's inputs are made by its parameter node, and its
// outputs are used by its return node, so that all that is said of nodes holds for both ends of a block, too.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meta/op/registry.h"
#include "step/compiled/ir/type.h"

namespace metaprof::ir {

class Graph;
struct Block;
struct Node;

/// Numbers, texts, lists: what a constant or an attribute holds. Never a tensor.
using Constant = metaprof::Value;

/// `user` takes the value as its input number `index`.
struct Use {
  Node* user = nullptr;
  size_t index = 0;
};

struct Value {
  Type type;
  std::string name;  ///< for readers; may be empty
  Node* node = nullptr;
  size_t index = 0;  ///< which output of the node
  std::vector<Use> uses;

  bool is_used() const { return !uses.empty(); }
  /// Everybody who takes this takes the other one.
  void replace_with(Value* other);
};

/// What a node is. `call` is an operator of the registry, `number` arithmetic on numbers; the others are the
/// graph's own.
enum class Kind : uint8_t {
  parameter,
  result,  ///< the end of a block, which takes its outputs
  call,
  number,
  constant,
  list_construct,
  list_unpack,
  branch,  ///< prim::If (condition): two blocks
  loop,    ///< prim::Loop (most trips, first condition, carried values …): one block, see docs
  differentiable_graph,
  fusion_group,
  fused_concat,        ///< the end of a fused kernel: its inputs are written side by side
  broadcasting_chunk,  ///< while kernels are fused: chunks of each input, broadcast to the others
  constant_chunk,  ///< a call of aten::chunk and what takes its list apart, where the number of chunks is a constant
  grad_of,         ///< one block: what computes nothing but zeros from zeros
  autograd_zero,
  autograd_add,
  autograd_any_defined,
  matmul_tree,  ///< a sum of matrix products as one product
  matmul_side,  ///< products that share a side as one product
};
std::string_view name_of(Kind kind);  ///< "prim::If"; empty for operators and arithmetic
std::optional<Kind> kind_of_name(std::string_view name);

using Attribute = std::variant<Constant, std::shared_ptr<Graph>>;

struct Node {
  Kind kind = Kind::call;
  const Operator* op = nullptr;  ///< of a call
  std::string name;              ///< "aten::add.Tensor", "prim::If"
  std::vector<Value*> inputs;    ///< of a call: one per argument of the schema
  std::vector<std::unique_ptr<Value>> outputs;
  std::vector<std::unique_ptr<Block>> blocks;
  std::map<std::string, Attribute> attributes;
  std::string scope;  ///< path of the module whose forward makes the call

  Graph* home = nullptr;   ///< the graph that owns it
  Block* block = nullptr;  ///< in which it stands; null: in none
  Node *previous = nullptr, *next = nullptr;
  int64_t position = 0;  ///< grows within a block

  bool is(Kind which) const { return kind == which; }
  Value* input(size_t i = 0) const { return inputs[i]; }
  Value* output(size_t i = 0) const { return outputs[i].get(); }
  /// No output has a use.
  bool is_unused() const;
  /// The input is made by a constant node.
  bool has_constant(size_t i) const { return inputs[i]->node->is(Kind::constant); }
  const Constant& constant(size_t i) const;  ///< … with this value
  const Constant& value(const std::string& attribute) const;
  const std::shared_ptr<Graph>& graph(const std::string& attribute) const;
  bool has(const std::string& attribute) const { return attributes.contains(attribute); }

  Value* add_output(Type type, std::string name = {});
  void add_input(Value* value);
  void set_input(size_t i, Value* value);
  void remove_input(size_t i);
  void remove_output(size_t i);  ///< has no use
  Block* add_block();
  /// Before or after `other`, in whose block it then stands. It may have stood elsewhere.
  void move_before(Node* other);
  void move_after(Node* other);
  /// In the same block.
  bool is_before(const Node* other) const { return position < other->position; }
  Graph& owner() const { return *home; }
  /// Ends it. Errors: an output is used.
  void destroy();
};

struct Block {
  Block(Graph& graph, Node* owner);
  ~Block();
  Block(const Block&) = delete;

  Graph& graph;
  Node* owner;  ///< the node whose block it is; null: the graph's
  std::unique_ptr<Node> parameters, results;

  const std::vector<std::unique_ptr<Value>>& inputs() const { return parameters->outputs; }
  const std::vector<Value*>& outputs() const { return results->inputs; }
  Value* input(size_t i) const { return parameters->output(i); }
  Value* output(size_t i) const { return results->inputs[i]; }
  Node* first() const { return parameters->next; }
  bool is_end(const Node* node) const { return node == results.get(); }
  /// In order. The list is made at once: nodes may be added and destroyed meanwhile.
  std::vector<Node*> nodes() const;
  void append(Node* node) { node->move_before(results.get()); }
};

/// Maps values of one graph to those of another.
using ValueMap = std::map<const Value*, Value*>;

class Graph {
 public:
  Graph() : block_(std::make_unique<Block>(*this, nullptr)) {}
  Graph(const Graph&) = delete;

  Block& block() { return *block_; }
  const Block& block() const { return *block_; }
  std::vector<Node*> nodes() const { return block_->nodes(); }
  std::shared_ptr<Graph> copy() const;

  Value* add_input(Type type, std::string name = {}) {
    return block_->parameters->add_output(std::move(type), std::move(name));
  }
  void add_output(Value* value) { block_->results->add_input(value); }

  // New nodes stand in no block until they are moved to a place. The graph owns them.
  Node* create(Kind kind, const std::vector<Value*>& inputs = {});
  Node* create_call(const Operator& op, const std::vector<Value*>& inputs);
  Node* create_constant(Constant value);
  /// A copy of a node of any graph, its blocks included; inputs as `map` says, to which its outputs are added.
  Node* create_copy(const Node& node, ValueMap& map);

 private:
  friend struct Node;
  std::vector<Node*> loose_;  // nodes in no block
  std::unique_ptr<Block> block_;

 public:
  ~Graph();
};

/// Copies of all nodes of a block before `place`. `map` has its inputs; returns what its outputs became.
std::vector<Value*> insert_copy(const Block& block, Node* place, ValueMap& map);
/// Adds to `map` the values that a block takes from outside, as themselves: for copies in the same graph.
void map_outside(const Block& block, ValueMap& map);
/// The type of a constant.
Type type_of(const Constant& constant);
/// The type of an argument or a result of an operator.
Type type_of(const Argument& argument);
/// All nodes of a block and of the blocks inside, in order.
void collect_nodes(const Block& block, std::vector<Node*>& nodes);
/// Makes every output of a node known as what its operator's schema says.
void add_schema_outputs(Node& node);

}  // namespace metaprof::ir
