#include "step/compiled/ir/graph.h"

#include <algorithm>

#include "core/error.h"

namespace metaprof::ir {
namespace {

constexpr struct {
  Kind kind;
  std::string_view name;
} kNames[] = {{Kind::parameter, "prim::Param"},
              {Kind::result, "prim::Return"},
              {Kind::constant, "prim::Constant"},
              {Kind::list_construct, "prim::ListConstruct"},
              {Kind::list_unpack, "prim::ListUnpack"},
              {Kind::branch, "prim::If"},
              {Kind::loop, "prim::Loop"},
              {Kind::differentiable_graph, "prim::DifferentiableGraph"},
              {Kind::fusion_group, "prim::FusionGroup"},
              {Kind::fused_concat, "prim::FusedConcat"},
              {Kind::broadcasting_chunk, "prim::BroadcastingChunk"},
              {Kind::constant_chunk, "prim::ConstantChunk"},
              {Kind::grad_of, "prim::GradOf"},
              {Kind::autograd_zero, "prim::AutogradZero"},
              {Kind::autograd_add, "prim::AutogradAdd"},
              {Kind::autograd_any_defined, "prim::AutogradAnyNonZero"},
              {Kind::matmul_tree, "prim::MMTreeReduce"},
              {Kind::matmul_side, "prim::MMBatchSide"}};

constexpr int64_t kPositionStep = int64_t{1} << 24;

void number_again(Block& block) {
  int64_t position = 0;
  block.parameters->position = 0;
  for (Node* node = block.first();; node = node->next) {
    node->position = position += kPositionStep;
    if (block.is_end(node)) return;
  }
}

void remove_use(Value* value, const Node* user, size_t index) {
  const auto use = std::ranges::find_if(
      value->uses, [&](const Use& one) { return one.user == user && one.index == index; });
  value->uses.erase(use);
}

void unlink(Node* node) {
  if (!node->block) return;
  node->previous->next = node->next;
  node->next->previous = node->previous;
  node->block = nullptr;
}

// Takes everything out of a block that goes, so that values outside have no uses in it.
void empty(Block& block) {
  while (!block.results->inputs.empty()) block.results->remove_input(block.results->inputs.size() - 1);
  const std::vector<Node*> nodes = block.nodes();
  for (size_t i = nodes.size(); i-- > 0;) nodes[i]->destroy();
}

void link_after(Node* node, Node* place) {
  unlink(node);
  node->block = place->block;
  node->previous = place;
  node->next = place->next;
  place->next->previous = node;
  place->next = node;
  const int64_t low = place->position, high = node->next->position;
  node->position = low + (high - low) / 2;
  if (node->position == low) number_again(*node->block);
}

}  // namespace

std::string_view name_of(Kind kind) {
  for (const auto& row : kNames)
    if (row.kind == kind) return row.name;
  return {};
}

std::optional<Kind> kind_of_name(std::string_view name) {
  for (const auto& row : kNames)
    if (row.name == name) return row.kind;
  return std::nullopt;
}

void Value::replace_with(Value* other) {
  if (other == this) return;
  for (const Use& use : uses) {
    use.user->inputs[use.index] = other;
    other->uses.push_back(use);
  }
  uses.clear();
}

// --- Nodes

bool Node::is_unused() const {
  return std::ranges::none_of(outputs, [](const auto& value) { return value->is_used(); });
}

const Constant& Node::constant(size_t i) const { return inputs[i]->node->value("value"); }

const Constant& Node::value(const std::string& attribute) const {
  return std::get<Constant>(attributes.at(attribute));
}

const std::shared_ptr<Graph>& Node::graph(const std::string& attribute) const {
  return std::get<std::shared_ptr<Graph>>(attributes.at(attribute));
}

Value* Node::add_output(Type type, std::string value_name) {
  auto& made = outputs.emplace_back(std::make_unique<Value>());
  made->type = std::move(type);
  made->name = std::move(value_name);
  made->node = this;
  made->index = outputs.size() - 1;
  return made.get();
}

void Node::add_input(Value* value) {
  value->uses.push_back({this, inputs.size()});
  inputs.push_back(value);
}

void Node::set_input(size_t i, Value* value) {
  remove_use(inputs[i], this, i);
  inputs[i] = value;
  value->uses.push_back({this, i});
}

void Node::remove_input(size_t i) {
  for (size_t at = i; at < inputs.size(); ++at) remove_use(inputs[at], this, at);
  inputs.erase(inputs.begin() + static_cast<ptrdiff_t>(i));
  for (size_t at = i; at < inputs.size(); ++at) inputs[at]->uses.push_back({this, at});
}

void Node::remove_output(size_t i) {
  if (outputs[i]->is_used()) fail("{}: an output that is used cannot be removed", name);
  outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(i));
  for (size_t at = i; at < outputs.size(); ++at) outputs[at]->index = at;
}

Block* Node::add_block() { return blocks.emplace_back(std::make_unique<Block>(owner(), this)).get(); }

void Node::move_before(Node* other) { move_after(other->previous); }

void Node::move_after(Node* other) {
  if (other == this) return;
  if (!block) std::erase(home->loose_, this);
  link_after(this, other);
}

void Node::destroy() {
  if (!is_unused()) fail("{}: a node whose output is used cannot be destroyed", name);
  for (const auto& inner : blocks) empty(*inner);
  for (size_t i = inputs.size(); i-- > 0;) remove_use(inputs[i], this, i);
  inputs.clear();
  if (!block) std::erase(home->loose_, this);
  unlink(this);
  delete this;
}

// --- Blocks

Block::Block(Graph& graph, Node* owner) : graph(graph), owner(owner) {
  parameters = std::make_unique<Node>();
  results = std::make_unique<Node>();
  parameters->kind = Kind::parameter;
  results->kind = Kind::result;
  for (Node* end : {parameters.get(), results.get()}) {
    end->name = std::string(name_of(end->kind));
    end->home = &graph;
    end->block = this;
  }
  parameters->next = parameters->previous = results.get();
  results->next = results->previous = parameters.get();
  results->position = kPositionStep;
}

// Nodes go together with all that uses their values: nobody is asked.
Block::~Block() {
  for (Node* node : nodes()) delete node;
}

std::vector<Node*> Block::nodes() const {
  std::vector<Node*> nodes;
  for (Node* node = first(); !is_end(node); node = node->next) nodes.push_back(node);
  return nodes;
}

// --- Graphs

Graph::~Graph() {
  for (Node* node : loose_) delete node;
}

Node* Graph::create(Kind kind, const std::vector<Value*>& inputs) {
  auto* node = new Node;
  loose_.push_back(node);
  node->home = this;
  node->kind = kind;
  node->name = std::string(name_of(kind));
  for (Value* value : inputs) node->add_input(value);
  return node;
}

Node* Graph::create_call(const Operator& op, const std::vector<Value*>& inputs) {
  Node* node = create(Kind::call, inputs);
  node->op = &op;
  node->name = op.name;
  add_schema_outputs(*node);
  return node;
}

Node* Graph::create_constant(Constant value) {
  Node* node = create(Kind::constant);
  node->add_output(type_of(value));
  node->attributes.emplace("value", std::move(value));
  return node;
}

Node* Graph::create_copy(const Node& node, ValueMap& map) {
  Node* copy = create(node.kind);
  copy->op = node.op;
  copy->name = node.name;
  copy->scope = node.scope;
  for (Value* input : node.inputs) copy->add_input(map.at(input));
  for (const auto& [key, attribute] : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute);
    copy->attributes.emplace(key, graph ? Attribute((*graph)->copy()) : attribute);
  }
  for (const auto& output : node.outputs) map[output.get()] = copy->add_output(output->type, output->name);
  for (const auto& block : node.blocks) {
    auto& made = copy->blocks.emplace_back(std::make_unique<Block>(*this, copy));
    for (const auto& input : block->inputs())
      map[input.get()] = made->parameters->add_output(input->type, input->name);
    for (Value* output : insert_copy(*block, made->results.get(), map)) made->results->add_input(output);
  }
  return copy;
}

std::shared_ptr<Graph> Graph::copy() const {
  auto copy = std::make_shared<Graph>();
  ValueMap map;
  for (const auto& input : block_->inputs()) map[input.get()] = copy->add_input(input->type, input->name);
  for (Value* output : insert_copy(*block_, copy->block().results.get(), map)) copy->add_output(output);
  return copy;
}

std::vector<Value*> insert_copy(const Block& block, Node* place, ValueMap& map) {
  Graph& graph = place->owner();
  for (const Node* node = block.first(); !block.is_end(node); node = node->next)
    graph.create_copy(*node, map)->move_before(place);
  std::vector<Value*> outputs;
  for (Value* output : block.outputs()) outputs.push_back(map.at(output));
  return outputs;
}

void map_outside(const Block& block, ValueMap& map) {
  std::vector<Node*> inner;
  collect_nodes(block, inner);
  inner.push_back(block.results.get());
  for (const Node* node : inner) {
    for (Value* input : node->inputs) map.try_emplace(input, input);
    for (const auto& one : node->blocks)
      for (Value* output : one->outputs()) map.try_emplace(output, output);
  }
}

Type type_of(const Constant& constant) {
  using From = Constant::Kind;
  switch (constant.kind()) {
    case From::none: return Type::Kind::none;
    case From::integer: return Type::Kind::integer;
    case From::real: return Type::Kind::real;
    case From::boolean: return Type::Kind::boolean;
    case From::complex: return Type::Kind::scalar;
    case From::string: return Type::Kind::string;
    case From::integers: return Type::Kind::integers;
    case From::reals: return Type::Kind::reals;
    case From::booleans: return Type::Kind::booleans;
    case From::device: return Type::Kind::device;
    case From::tensors: return Type::Kind::tensors;
    case From::tensor: return Type::Kind::tensor;
    case From::generator: return Type::Kind::any;
  }
  return Type::Kind::any;
}

Type type_of(const Argument& argument) {
  using To = Type::Kind;
  Type type = To::any;
  switch (argument.type) {
    case metaprof::Type::tensor: type = argument.list ? To::tensors : To::tensor; break;
    case metaprof::Type::scalar: type = argument.list ? To::any : To::scalar; break;
    case metaprof::Type::integer: type = argument.list ? To::integers : To::integer; break;
    case metaprof::Type::real: type = argument.list ? To::reals : To::real; break;
    case metaprof::Type::boolean: type = argument.list ? To::booleans : To::boolean; break;
    case metaprof::Type::string: type = To::string; break;
    case metaprof::Type::device: type = To::device; break;
    case metaprof::Type::dtype:
    case metaprof::Type::layout:
    case metaprof::Type::memory_format: type = To::integer; break;
    default: break;
  }
  type.optional = argument.optional;
  return type;
}

void collect_nodes(const Block& block, std::vector<Node*>& nodes) {
  for (Node* node = block.first(); !block.is_end(node); node = node->next) {
    nodes.push_back(node);
    for (const auto& inner : node->blocks) collect_nodes(*inner, nodes);
  }
}

void add_schema_outputs(Node& node) {
  for (const Argument& result : node.op->schema.returns) node.add_output(type_of(result));
}

}  // namespace metaprof::ir
