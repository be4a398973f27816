#include "step/compiled/fusion/fused_sizes.h"

#include <algorithm>
#include <map>

#include "step/compiled/ir/numbers.h"

namespace metaprof::ir {
namespace {

// Adds nodes one behind the other.
class Place {
 public:
  explicit Place(Node* behind) : last_(behind) {}

  Value* number(std::string_view name, const std::vector<Value*>& given) {
    Node* node = last_->owner().create(Kind::number, given);
    node->name = std::string(name);
    node->scope = last_->scope;
    node->add_output(number_op(name)->type());
    return add(node);
  }
  Value* constant(const Constant& value) { return add(last_->owner().create_constant(value)); }
  Value* broadcast(const std::vector<Value*>& sizes) {
    Value* together = sizes[0];
    for (size_t i = 1; i < sizes.size(); ++i)
      if (sizes[i] != together) together = number("prim::BroadcastSizes", {together, sizes[i]});
    return together;
  }

 private:
  Value* add(Node* node) {
    node->move_after(last_);
    last_ = node;
    return node->output();
  }

  Node* last_;
};

void replace_uses(Value* value, Value* sizes) {
  const std::vector<Use> uses = value->uses;
  for (const Use& use : uses) {
    if (!is_size(*use.user) || use.user->output() == sizes) continue;
    use.user->output()->replace_with(sizes);
    use.user->destroy();
  }
}

bool only_asked_for_sizes(const Value& value) {
  return std::ranges::all_of(value.uses, [](const Use& use) { return is_size(*use.user); });
}

// Sizes of a kernel's values, outside of it, as far as they are asked for.
class Shapes {
 public:
  explicit Shapes(Node* group) : place_(group) {
    const Block& kernel = group->graph("graph")->block();
    for (size_t i = 0; i < group->inputs.size(); ++i) outside_[kernel.input(i)] = group->input(i);
    // A result that stays says more directly what a long chain of broadcasts would say.
    for (size_t i = 0; i < group->outputs.size(); ++i)
      if (!only_asked_for_sizes(*group->output(i))) outside_.emplace(kernel.output(i), group->output(i));
  }

  Value* of(const Value* inner) {
    if (const auto found = known_.find(inner); found != known_.end()) return found->second;
    return known_[inner] = make(inner);
  }

 private:
  Value* make(const Value* inner) {
    if (const auto found = outside_.find(inner); found != outside_.end())
      return place_.number("aten::size", {found->second});
    const Node& maker = *inner->node;
    if (maker.is(Kind::constant_chunk)) return chunk_of(maker, inner->index);
    std::vector<Value*> sizes;
    for (const Value* input : maker.inputs)
      if (input->type.is_tensor() && !input->node->is(Kind::constant)) sizes.push_back(of(input));
    return place_.broadcast(sizes);
  }

  Value* chunk_of(const Node& chunk, size_t index) {
    const bool last = index + 1 == chunk.outputs.size();
    Value* whole = of(chunk.input());
    Value* count = place_.constant(chunk.constant(1));
    Value* dim = place_.constant(chunk.constant(2));
    return place_.number("prim::ChunkSizes", {whole, count, dim, place_.constant(last)});
  }

  Place place_;
  std::map<const Value*, Value*> outside_, known_;
};

}  // namespace

bool is_size(const Node& node) { return node.is(Kind::number) && node.name == "aten::size"; }

void replace_sizes(Value* value) {
  if (!value->is_used()) return;
  Place place(value->node);
  std::vector<Value*> sizes;
  for (Value* input : value->node->inputs)
    if (input->type.is_tensor()) sizes.push_back(place.number("aten::size", {input}));
  replace_uses(value, place.broadcast(sizes));
}

void drop_outputs_for_sizes(Node* group) {
  Graph& kernel = *group->graph("graph");
  Shapes shapes(group);
  for (size_t i = group->outputs.size(); i-- > 0;) {
    Value* output = group->output(i);
    const Value* inner = kernel.block().output(i);
    if (!only_asked_for_sizes(*output) || inner->node->is(Kind::fused_concat)) continue;
    if (output->is_used()) replace_uses(output, shapes.of(inner));
    group->remove_output(i);
    kernel.block().results->remove_input(i);
  }
}

}  // namespace metaprof::ir
