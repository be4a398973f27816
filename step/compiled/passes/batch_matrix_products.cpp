// Sums of many matrix products become one product of the concatenated sides, and products that share a side become one
// product (torch/csrc/jit/passes/batch_mm.cpp, 2.11). Whether sizes allow it is seen when they run.

#include <algorithm>
#include <map>

#include "step/compiled/ir/aliases.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

constexpr size_t kFewest = 4;  // products that are worth it

bool is_product(const Node& node) { return node.is(Kind::call) && node.name == "aten::mm"; }

bool is_sum(const Node& node) {
  return node.is(Kind::call) && node.name == "aten::add.Tensor" && node.has_constant(2) &&
         node.constant(2).is_number() && node.constant(2).real() == 1;
}

// The products that a sum is made of; empty: something else is in it, or somebody else takes a part.
bool collect_products(Node* node, const Node* root, std::vector<Node*>& products) {
  if (node->block != root->block || (node != root && node->output()->uses.size() != 1)) return false;
  if (is_product(*node)) {
    products.push_back(node);
    return true;
  }
  return is_sum(*node) && collect_products(node->input(0)->node, root, products) &&
         collect_products(node->input(1)->node, root, products);
}

bool is_part_of_sum(const Node& node) {
  const auto& uses = node.output()->uses;
  return uses.size() == 1 && is_sum(*uses[0].user) && uses[0].user->block == node.block;
}

void batch_sums(Block& block) {
  for (Node* node : block.nodes()) {
    if (!is_sum(*node) || is_part_of_sum(*node)) continue;
    std::vector<Node*> products;
    if (!collect_products(node, node, products) || products.size() < kFewest) continue;
    Node* tree = block.graph.create(Kind::matmul_tree);
    tree->move_before(node);
    tree->scope = node->scope;
    for (const size_t side : {size_t{0}, size_t{1}})
      for (const Node* product : products) tree->add_input(product->input(side));
    node->output()->replace_with(tree->add_output(node->output()->type, node->output()->name));
  }
}

// Products that take `shared`, of which none takes what comes of another, and that may all stand where the last
// stands.
void batch_side(Block& block, const std::vector<Node*>& products, size_t shared) {
  if (products.size() < kFewest) return;
  Node* side = block.graph.create(Kind::matmul_side, {products[0]->input(shared)});
  side->attributes["shared_left"] = Constant(shared == 0);
  side->scope = products[0]->scope;
  side->move_before(products[0]);
  for (Node* product : products) {
    side->add_input(product->input(1 - shared));
    product->output()->replace_with(side->add_output(product->output()->type, product->output()->name));
    product->destroy();
  }
}

// What comes in must be made before the first of the products.
void batch_sides(Block& block) {
  for (const size_t shared : {size_t{0}, size_t{1}}) {
    std::map<int64_t, std::vector<Node*>> groups;  // by the first product's place
    std::map<const Value*, Node*> first;
    for (Node* node : block.nodes()) {
      if (!is_product(*node)) continue;
      Node*& leader = first[node->input(shared)];
      if (!leader) leader = node;
      const Node* maker = node->input(1 - shared)->node;
      if (maker->block != &block || maker->is_before(leader)) groups[leader->position].push_back(node);
    }
    for (const auto& [position, products] : groups) batch_side(block, products, shared);
  }
}

void batch(Block& block, const Aliases& aliases) {
  for (Node* node : block.nodes()) {
    if (is_product(*node) && aliases.touches_written(*node))
      return;  // a product may not be moved over a write
    for (const auto& inner : node->blocks) batch(*inner, aliases);
  }
  batch_sums(block);
  batch_sides(block);
}

}  // namespace

void batch_matrix_products(Graph& graph, const PassContext& context) {
  batch(graph.block(), Aliases(graph));
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
