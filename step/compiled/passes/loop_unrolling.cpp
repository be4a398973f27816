// A Loop with a small body that nothing ends early: of a few trips, whose number is a constant, it becomes its body that
// often; else it becomes a Loop that makes eight trips in one, and one for what is left of them.

#include <algorithm>

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// torch/csrc/jit/passes/loop_unrolling.cpp, 2.11: kMaxBodySize, and the trips that a constant loop may make.
constexpr size_t kMostNodes = 32;
constexpr int64_t kMostTrips = 64;  // that a loop of a constant number is unrolled for
constexpr int64_t kTripsInOne = 8;

bool always_goes_on(const Value* condition) {
  return condition->node->is(Kind::constant) && condition->node->value("value").boolean();
}

bool is_small(const Node& loop) {
  if (!always_goes_on(loop.input(1)) || !always_goes_on(loop.blocks[0]->output(0))) return false;
  std::vector<Node*> nodes;
  collect_nodes(*loop.blocks[0], nodes);
  const auto working =
      std::ranges::count_if(nodes, [](const Node* node) { return !node->is(Kind::constant); });
  const bool has_loop = std::ranges::any_of(nodes, [](const Node* node) { return node->is(Kind::loop); });
  return !has_loop && static_cast<size_t>(working) <= kMostNodes;
}

// The body before `place`, for one trip; `carried` becomes what it gives.
void copy_trip(const Block& body, Node* place, Value* trip, std::vector<Value*>& carried) {
  ValueMap map;
  map_outside(body, map);
  map[body.input(0)] = trip;
  for (size_t i = 0; i < carried.size(); ++i) map[body.input(i + 1)] = carried[i];
  const std::vector<Value*> outputs = insert_copy(body, place, map);
  carried.assign(outputs.begin() + 1, outputs.end());
}

std::vector<Value*> carried_by(const Node& loop) { return {loop.inputs.begin() + 2, loop.inputs.end()}; }

Value* number(Node* place, int64_t value) {
  Node* constant = place->owner().create_constant(Constant(value));
  constant->move_before(place);
  return constant->output();
}

Value* arithmetic(Node* place, const char* name, Value* a, Value* b) {
  Node* node = place->owner().create(Kind::number, {a, b});
  node->name = name;
  node->move_before(place);
  return node->add_output(Type::Kind::integer);
}

void unroll_all(Node* loop) {
  std::vector<Value*> carried = carried_by(*loop);
  for (int64_t trip = 0; trip < loop->constant(0).integer(); ++trip)
    copy_trip(*loop->blocks[0], loop, number(loop, trip), carried);
  for (size_t i = 0; i < carried.size(); ++i) loop->output(i)->replace_with(carried[i]);
  loop->destroy();
}

// A loop like this one before it, with another number of trips and nothing in its body.
Node* empty_loop(Node* loop, Value* trips, const std::vector<Value*>& carried) {
  Node* made = loop->owner().create(Kind::loop, {trips, loop->input(1)});
  for (Value* value : carried) made->add_input(value);
  made->scope = loop->scope;
  made->move_before(loop);
  Block* body = made->add_block();
  body->parameters->add_output(Type::Kind::integer);
  for (const auto& output : loop->outputs) {
    body->parameters->add_output(output->type);
    made->add_output(output->type, output->name);
  }
  return made;
}

void finish_body(Block& body, const std::vector<Value*>& carried) {
  Node* goes_on = body.graph.create_constant(Constant(true));
  body.append(goes_on);
  body.results->add_input(goes_on->output());
  for (Value* value : carried) body.results->add_input(value);
}

std::vector<Value*> values_of(const std::vector<std::unique_ptr<Value>>& values, size_t first) {
  std::vector<Value*> list;
  for (size_t i = first; i < values.size(); ++i) list.push_back(values[i].get());
  return list;
}

void unroll_by_factor(Node* loop) {
  Value* factor = number(loop, kTripsInOne);
  Value* rounds = arithmetic(loop, "aten::floordiv.int", loop->input(0), factor);
  Node* main = empty_loop(loop, rounds, carried_by(*loop));
  Block& body = *main->blocks[0];
  std::vector<Value*> carried = values_of(body.inputs(), 1);
  Node* end = body.results.get();
  Value* base = arithmetic(end, "aten::mul.int", body.input(0), number(end, kTripsInOne));
  for (int64_t trip = 0; trip < kTripsInOne; ++trip)
    copy_trip(*loop->blocks[0], end, arithmetic(end, "aten::add.int", base, number(end, trip)), carried);
  finish_body(body, carried);

  Value* made_trips = arithmetic(loop, "aten::mul.int", rounds, factor);
  Value* left = arithmetic(loop, "aten::sub.int", loop->input(0), made_trips);
  Node* rest = empty_loop(loop, left, values_of(main->outputs, 0));
  Block& rest_body = *rest->blocks[0];
  carried = values_of(rest_body.inputs(), 1);
  end = rest_body.results.get();
  copy_trip(*loop->blocks[0], end, arithmetic(end, "aten::add.int", made_trips, rest_body.input(0)), carried);
  finish_body(rest_body, carried);
  for (size_t i = 0; i < loop->outputs.size(); ++i) loop->output(i)->replace_with(rest->output(i));
  loop->destroy();
}

void unroll(Block& block) {
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) unroll(*inner);
    if (!node->is(Kind::loop) || !is_small(*node)) continue;
    if (!node->has_constant(0))
      unroll_by_factor(node);
    else if (node->constant(0).integer() <= kMostTrips)
      unroll_all(node);
  }
}

}  // namespace

void unroll_loops(Graph& graph, const PassContext& context) {
  unroll(graph.block());
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
