#include "step/compiled/ir/subgraphs.h"

#include <algorithm>
#include <unordered_set>

namespace metaprof::ir {
namespace {

// The value inside the group for one outside that it takes.
Value* inner_value(Node* group, Value* outer) {
  Graph& graph = *group->graph("graph");
  Node* first = graph.block().parameters.get();
  if (outer->node->is(Kind::constant)) {
    Node* constant = graph.create_constant(outer->node->value("value"));
    constant->move_after(first);
    constant->output()->type = outer->type;
    return constant->output();
  }
  for (size_t i = 0; i < group->inputs.size(); ++i)
    if (group->input(i) == outer) return graph.block().input(i);
  group->add_input(outer);
  return graph.add_input(outer->type, outer->name);
}

void remove_group_input(Node* group, size_t i) {
  group->remove_input(i);
  group->graph("graph")->block().parameters->remove_output(i);
}

// The first place behind the group's constants.
Node* begin_of(const Graph& graph) {
  Node* node = graph.block().first();
  while (!graph.block().is_end(node) && node->is(Kind::constant)) node = node->next;
  return node;
}

// What an output of a node that went into the group has become, for those inside and outside.
void connect(Node* group, Value* outer, Value* inner) {
  Graph& graph = *group->graph("graph");
  for (size_t i = group->inputs.size(); i-- > 0;) {
    if (group->input(i) != outer) continue;
    graph.block().input(i)->replace_with(inner);
    remove_group_input(group, i);
  }
  if (!outer->is_used()) return;
  graph.add_output(inner);
  outer->replace_with(group->add_output(outer->type, outer->name));
}

void merge_one(Node* producer, Node* group) {
  Graph& graph = *group->graph("graph");
  ValueMap map;
  for (Value* input : producer->inputs) map[input] = inner_value(group, input);
  Node* copy = graph.create_copy(*producer, map);
  copy->move_before(begin_of(graph));
  for (size_t i = 0; i < producer->outputs.size(); ++i) connect(group, producer->output(i), copy->output(i));
  producer->destroy();
}

bool takes_from(const Node& node, const std::unordered_set<const Node*>& makers) {
  const auto made_by = [&](const Value* value) { return makers.contains(value->node); };
  if (std::ranges::any_of(node.inputs, made_by)) return true;
  std::vector<Node*> inner;
  for (const auto& block : node.blocks) {
    collect_nodes(*block, inner);
    if (std::ranges::any_of(block->outputs(), made_by)) return true;
  }
  return std::ranges::any_of(inner, [&](const Node* one) {
    return std::ranges::any_of(one->inputs, made_by) || std::ranges::any_of(one->blocks, [&](const auto& b) {
             return std::ranges::any_of(b->outputs(), made_by);
           });
  });
}

}  // namespace

Node* make_group(Node* node, Kind kind) {
  Node* group = node->owner().create(kind);
  group->attributes.emplace("graph", std::make_shared<Graph>());
  group->scope = node->scope;
  group->move_after(node);
  merge_one(node, group);
  return group;
}

void merge_into(Node* producer, Node* group) {
  if (producer->kind != group->kind) return merge_one(producer, group);
  std::vector<Node*> nodes = inline_group(producer);
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!nodes[i]->is(Kind::constant))
      merge_one(nodes[i], group);
    else if (nodes[i]->is_unused())
      nodes[i]->destroy();
  }
}

void merge_behind(Node* group, Node* consumer) {
  Graph& graph = *group->graph("graph");
  ValueMap map;
  for (Value* input : consumer->inputs) {
    const auto inside = [&]() -> Value* {
      for (size_t i = 0; i < group->outputs.size(); ++i)
        if (group->output(i) == input) return graph.block().output(i);
      return inner_value(group, input);
    };
    map[input] = inside();
  }
  Node* copy = graph.create_copy(*consumer, map);
  graph.block().append(copy);
  for (size_t i = 0; i < consumer->outputs.size(); ++i) connect(group, consumer->output(i), copy->output(i));
  consumer->destroy();
  for (size_t i = group->outputs.size(); i-- > 0;) {
    if (group->output(i)->is_used()) continue;
    graph.block().results->remove_input(i);
    group->remove_output(i);
  }
}

std::vector<Node*> inline_group(Node* group) {
  const Graph& graph = *group->graph("graph");
  ValueMap map;
  for (size_t i = 0; i < group->inputs.size(); ++i) map[graph.block().input(i)] = group->input(i);
  Node* before = group->previous;
  const std::vector<Value*> outputs = insert_copy(graph.block(), group, map);
  std::vector<Node*> nodes;
  for (Node* node = before->next; node != group; node = node->next) nodes.push_back(node);
  // A graph that has been differentiated has more outputs than its node.
  for (size_t i = 0; i < group->outputs.size(); ++i) group->output(i)->replace_with(outputs[i]);
  group->destroy();
  return nodes;
}

bool make_adjacent(Node* producer, Node* group) {
  std::unordered_set<const Node*> dependent{producer};
  std::vector<Node*> moved;
  for (Node* node = producer->next; node != group; node = node->next) {
    if (!takes_from(*node, dependent)) continue;
    if (has_effects(*node) || (node->op && node->op->record.facts.random)) return false;
    dependent.insert(node);
    moved.push_back(node);
  }
  dependent.erase(producer);
  if (takes_from(*group, dependent)) return false;
  Node* place = group;
  for (Node* node : moved) {
    node->move_after(place);
    place = node;
  }
  return true;
}

bool needs(const Node& node, const Node& earlier) {
  std::unordered_set<const Node*> dependent{&earlier};
  for (const Node* one = earlier.next; one != &node; one = one->next)
    if (takes_from(*one, dependent)) dependent.insert(one);
  return takes_from(node, dependent);
}

std::vector<Node*> working_nodes(const Graph& graph) {
  std::vector<Node*> nodes = graph.block().nodes();
  std::erase_if(nodes, [](const Node* node) { return node->is(Kind::constant); });
  return nodes;
}

void take_out(Node* group, Node* inner) {
  Graph& graph = *group->graph("graph");
  ValueMap map;
  const auto outside = [&](Value* value) -> Value* {
    if (value->node->is(Kind::constant)) {
      Node* constant = group->owner().create_constant(value->node->value("value"));
      constant->move_before(group);
      return constant->output();
    }
    for (size_t i = 0; i < group->inputs.size(); ++i)
      if (graph.block().input(i) == value) return group->input(i);
    for (size_t i = 0; i < group->outputs.size(); ++i)
      if (graph.block().output(i) == value) return group->output(i);
    graph.add_output(value);
    return group->add_output(value->type, value->name);
  };
  for (Value* input : inner->inputs) map[input] = outside(input);
  Node* copy = group->owner().create_copy(*inner, map);
  copy->move_after(group);
  for (size_t i = group->outputs.size(); i-- > 0;) {
    Value* output = graph.block().output(i);
    if (output->node != inner) continue;
    group->output(i)->replace_with(copy->output(output->index));
    graph.block().results->remove_input(i);
    group->remove_output(i);
  }
  inner->destroy();
}

}  // namespace metaprof::ir
