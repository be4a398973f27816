// Sums of many matrix products become one product of the concatenated sides, and products that share a side become one
// product (torch/csrc/jit/passes/batch_mm.cpp, 2.11). Whether sizes allow it is seen when they run.

#include <algorithm>
#include <map>

#include "step/compiled/ir/aliases.h"
#include "step/compiled/ir/subgraphs.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// Products that are worth it (min_fusion_size; how_many_is_many).
constexpr size_t kFewestInSum = 4, kFewestOnSide = 8;

bool is_call(const Node& node, std::string_view name) { return node.is(Kind::call) && node.name == name; }
bool is_product(const Node& node) { return is_call(node, "aten::mm"); }

// --- Sums

// A node whose value is a sum of products, as far as the nodes before it are known.
struct Tree {
  size_t products = 0;
  bool is_whole = false;  // not a part of a larger one
};

class Sums {
 public:
  Sums(Block& block, const Registry& registry) : block_(block), registry_(registry) {}

  void run() {
    for (Node* node : block_.nodes()) {
      for (const auto& inner : node->blocks) Sums(*inner, registry_).run();
      look_at(node);
    }
    for (Node* root : order_)
      if (trees_.at(root).is_whole && trees_.at(root).products >= kFewestInSum) batch(root);
  }

 private:
  void add(Node* node, size_t products) {
    trees_[node] = {products, true};
    order_.push_back(node);
  }

  void look_at(Node* node) {
    if (is_product(*node)) return add(node, 1);
    if (is_call(*node, "aten::t")) {
      const auto made = trees_.find(node->input()->node);
      if (made == trees_.end() || !is_product(*made->first)) return;
      made->second.is_whole = false;
      return add(node, 1);
    }
    if (!is_call(*node, "aten::add.Tensor")) return;
    Node *left = node->input(0)->node, *right = node->input(1)->node;
    const auto a = trees_.find(left), b = trees_.find(right);
    if (a == trees_.end() || b == trees_.end() || a == b || !a->second.is_whole || !b->second.is_whole)
      return;
    if (left->output()->uses.size() != 1 || right->output()->uses.size() != 1) return;
    a->second.is_whole = b->second.is_whole = false;
    add(node, a->second.products + b->second.products);
  }

  // (AB)ᵀ = BᵀAᵀ
  Node* transposed_product(Node* transpose) {
    Node* product = transpose->input()->node;
    const auto insert = [&](Node* node) {
      node->scope = product->scope;
      node->move_before(product);
      return node;
    };
    const auto transposed = [&](Value* side) {
      return insert(block_.graph.create_call(*registry_.find("aten::t"), {side}))->output();
    };
    Value *left = transposed(product->input(0)), *right = transposed(product->input(1));
    Node* made = insert(block_.graph.create_call(*product->op, {right, left}));
    transpose->output()->replace_with(made->output());
    return made;
  }

  std::vector<Node*> products_of(Node* root) {
    std::vector<Node*> products, open{root};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (is_product(*node)) {
        products.push_back(node);
      } else if (is_call(*node, "aten::t")) {
        products.push_back(transposed_product(node));
      } else {
        open.push_back(node->input(0)->node);
        open.push_back(node->input(1)->node);
      }
    }
    return products;
  }

  void batch(Node* root) {
    const std::vector<Node*> products = products_of(root);
    Node* tree = block_.graph.create(Kind::matmul_tree);
    tree->scope = root->scope;
    for (const size_t side : {size_t{0}, size_t{1}})
      for (const Node* product : products) tree->add_input(product->input(side));
    tree->move_before(root);
    root->output()->replace_with(tree->add_output(root->output()->type, root->output()->name));
  }

  Block& block_;
  const Registry& registry_;
  std::map<Node*, Tree> trees_;
  std::vector<Node*> order_;
};

// --- Sides

// Products that take the value on this side alone, in order, less those that need an earlier one.
std::vector<Node*> independent_products(const Value& shared, size_t side, const Block& block) {
  std::vector<Node*> products;
  for (const Use& use : shared.uses)
    if (use.user->block == &block && is_product(*use.user) && use.index == side &&
        use.user->input(1 - side) != &shared)
      products.push_back(use.user);
  std::ranges::sort(products, [](const Node* a, const Node* b) { return a->is_before(b); });
  std::vector<Node*> independent;
  for (Node* product : products)
    if (std::ranges::all_of(independent, [&](Node* first) { return !needs(*product, *first); }))
      independent.push_back(product);
  return independent;
}

void batch_side(const std::vector<Node*>& products, size_t shared) {
  if (products.size() < kFewestOnSide) return;
  // The first stands where the last can stand, too.
  for (size_t i = products.size() - 1; i-- > 0;) {
    make_adjacent(products[i], products[i + 1]);
    products[i]->move_before(products[i + 1]);
  }
  Node* side = products[0]->owner().create(Kind::matmul_side, {products[0]->input(shared)});
  side->attributes["shared_left"] = Constant(shared == 0);
  side->scope = products[0]->scope;
  side->move_before(products[0]);
  for (Node* product : products) {
    side->add_input(product->input(1 - shared));
    product->output()->replace_with(side->add_output(product->output()->type, product->output()->name));
  }
}

void batch_sides(Block& block) {
  std::vector<const Value*> considered;
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) batch_sides(*inner);
    if (!is_product(*node)) continue;
    for (const Value* input : node->inputs) {
      if (std::ranges::find(considered, input) != considered.end()) continue;
      considered.push_back(input);
      for (const size_t side : {size_t{0}, size_t{1}})
        batch_side(independent_products(*input, side, block), side);
    }
  }
}

bool writes(const Block& block) {
  std::vector<Node*> nodes;
  collect_nodes(block, nodes);
  return std::ranges::any_of(nodes, [](const Node* node) { return node->op && node->op->writes; });
}

}  // namespace

void batch_matrix_products(Graph& graph, const PassContext& context) {
  if (writes(graph.block())) return;  // a product may not be moved over a write
  Sums(graph.block(), context.registry).run();
  batch_sides(graph.block());
  eliminate_dead_code(graph, context);
  peephole(graph, context);
}

}  // namespace metaprof::ir
