#include "step/compiled/fusion/fused_chunks.h"

#include <algorithm>

#include "step/compiled/fusion/fused_sizes.h"
#include "step/compiled/ir/subgraphs.h"

namespace metaprof::ir {
namespace {

bool only_used_by(const Node& node, const Node* user) {
  return std::ranges::all_of(node.outputs, [&](const auto& output) {
    return std::ranges::all_of(output->uses, [&](const Use& use) { return use.user == user; });
  });
}

bool only_chunked(const Node& maker, const Node* chunk) {
  return std::ranges::all_of(maker.outputs, [&](const auto& output) {
    return std::ranges::all_of(output->uses,
                               [&](const Use& use) { return use.user == chunk || is_size(*use.user); });
  });
}

// Chunks of several tensors, as yet of one. Inputs are tensors alone.
Node* broadcasting(Node* chunk) {
  if (chunk->is(Kind::broadcasting_chunk)) return chunk;
  Node* made = chunk->owner().create(Kind::broadcasting_chunk, {chunk->input()});
  made->op = chunk->op;
  made->scope = chunk->scope;
  made->attributes = chunk->attributes;
  made->attributes["chunks"] = chunk->constant(1);
  made->attributes["dim"] = chunk->constant(2);
  for (const auto& output : chunk->outputs)
    output->replace_with(made->add_output(output->type, output->name));
  made->move_after(chunk);
  chunk->destroy();
  return made;
}

class ChunkMover {
 public:
  ChunkMover(Node* chunk, size_t index) : chunk_(broadcasting(chunk)), index_(index) {
    count_ = static_cast<size_t>(chunk_->value("chunks").integer());
    maker_ = chunk_->input(index)->node;
  }

  void run() {
    std::vector<Value*> results;
    for (size_t i = 0; i < count_; ++i) results.push_back(chunk_->output(count_ * index_ + i));
    std::vector<size_t> places;  // of the maker's tensors among the chunked ones
    for (Value* input : maker_->inputs)
      if (input->type.is_tensor()) places.push_back(place_of(input, results));
    Node* last = chunk_;
    for (size_t i = 0; i < count_; ++i) {
      Node* part = copy_for(i, places);
      part->move_after(last);
      last = part;
      part->output()->type = results[i]->type;
      results[i]->replace_with(part->output());
    }
    chunk_->remove_input(index_);
    for (size_t i = 0; i < count_; ++i) chunk_->remove_output(count_ * index_);
    replace_sizes(maker_->output());
    maker_->destroy();
  }

 private:
  size_t place_of(Value* input, const std::vector<Value*>& results) {
    const auto found = std::ranges::find(chunk_->inputs, input);
    const auto place = static_cast<size_t>(found - chunk_->inputs.begin());
    if (found != chunk_->inputs.end()) return place;
    chunk_->add_input(input);
    for (const Value* result : results) chunk_->add_output(result->type);
    return place;
  }

  Node* copy_for(size_t part, const std::vector<size_t>& places) {
    ValueMap map;
    size_t next = 0;
    for (Value* input : maker_->inputs)
      map[input] = input->type.is_tensor() ? chunk_->output(count_ * places[next++] + part) : input;
    return maker_->owner().create_copy(*maker_, map);
  }

  Node* chunk_;
  Node* maker_;
  size_t index_, count_;
};

void replace_broadcasting_chunk(Node* node, const Registry& registry) {
  Graph& graph = node->owner();
  Node* list = graph.create(Kind::list_construct, node->inputs);
  Node* broadcast =
      graph.create_call(*registry.find("aten::broadcast_tensors"), {list->add_output(Type::Kind::tensors)});
  Node* unpack = graph.create(Kind::list_unpack, {broadcast->output()});
  for (Node* made : {list, broadcast, unpack}) {
    made->scope = node->scope;
    made->move_before(node);
  }
  const auto count = static_cast<size_t>(node->value("chunks").integer());
  Node* last = node;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    Value* whole = unpack->add_output(Type(Type::Kind::tensor));
    Node* chunks = graph.create_constant(node->value("chunks"));
    Node* dim = graph.create_constant(node->value("dim"));
    Node* chunk = graph.create(Kind::constant_chunk, {whole, chunks->output(), dim->output()});
    chunk->op = node->op;
    chunk->scope = node->scope;
    chunk->attributes["of"] = node->value("of");
    for (Node* made : {chunks, dim, chunk}) {
      made->move_after(last);
      last = made;
    }
    for (size_t c = 0; c < count; ++c) {
      Value* part = node->output(count * i + c);
      part->replace_with(chunk->add_output(part->type, part->name));
    }
  }
  node->destroy();
}

// The chunks of this tensor inside the kernel; null: it takes it whole, or not.
Node* chunks_inside(Node* group, const Value* whole) {
  const auto found = std::ranges::find(group->inputs, whole);
  if (found == group->inputs.end()) return nullptr;
  const Value* inside = group->graph("graph")->block().input(size_t(found - group->inputs.begin()));
  Node* user = inside->uses.empty() ? nullptr : inside->uses[0].user;
  return user && user->is(Kind::constant_chunk) ? user : nullptr;
}

void take_chunks_of(Node* group, Node* chunk, Node* inside) {
  Block& kernel = group->graph("graph")->block();
  for (size_t i = 0; i < chunk->outputs.size(); ++i) {
    const auto found = std::ranges::find(group->inputs, chunk->output(i));
    if (found == group->inputs.end()) continue;
    const auto place = static_cast<size_t>(found - group->inputs.begin());
    kernel.input(place)->replace_with(inside->output(i));
    group->remove_input(place);
    kernel.parameters->remove_output(place);
  }
  chunk->destroy();
}

bool fuse_first_chunk(Node* group) {
  std::vector<Node*> chunks;
  for (const Value* input : group->inputs)
    if (input->node->is(Kind::constant_chunk) && input->node->block == group->block)
      chunks.push_back(input->node);
  std::ranges::stable_sort(chunks, [](const Node* a, const Node* b) { return b->is_before(a); });
  for (Node* chunk : chunks) {
    if (!only_used_by(*chunk, group) || chunk->outputs.size() == 1) continue;
    Node* inside = chunks_inside(group, chunk->input());
    if (!inside)
      merge_into(chunk, group);
    else if (inside->outputs.size() == chunk->outputs.size())
      take_chunks_of(group, chunk, inside);
    else
      continue;
    return true;
  }
  return false;
}

}  // namespace

bool move_chunk(Node* consumer, Value* producer, const std::function<bool(const Node&)>& has_code) {
  Node* chunk = producer->node;
  if (!chunk->is(Kind::constant_chunk) && !chunk->is(Kind::broadcasting_chunk)) return false;
  const size_t tensors = chunk->is(Kind::constant_chunk) ? 1 : chunk->inputs.size();
  size_t index = 0;
  while (index < tensors) {
    const Node& maker = *chunk->input(index)->node;
    if (has_code(maker) && maker.outputs.size() == 1 && only_chunked(maker, chunk)) break;
    ++index;
  }
  if (index == tensors || !only_used_by(*chunk, consumer)) return false;
  ChunkMover(chunk, index).run();
  return true;
}

void replace_broadcasting_chunks(Block& block, const Registry& registry) {
  for (Node* node : block.nodes())
    if (node->is(Kind::broadcasting_chunk)) replace_broadcasting_chunk(node, registry);
}

void fuse_first_chunks(Block& block) {
  std::vector<Node*> kernels = block.nodes();
  std::erase_if(kernels, [](const Node* node) { return !node->is(Kind::fusion_group); });
  for (Node* kernel : kernels)
    while (fuse_first_chunk(kernel)) {
    }
}

}  // namespace metaprof::ir
