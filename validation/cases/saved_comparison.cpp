#include "validation/cases/saved_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "meta/autograd/engine/op_node.h"
#include "meta/autograd/graph/views.h"

namespace metaprof {
namespace {

// Our graph, numbered breadth first.
class Graph {
 public:
  explicit Graph(const std::vector<Tensor>& outputs) {
    for (const Tensor& output : outputs) {
      if (output.defined()) gradient_edge(output);  // a view's history may have to be brought up to date
      roots.push_back(output.defined() && output->grad_fn ? edge_text(grad_fn(output), output->output_nr)
                                                          : "None");
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::vector<std::string> texts;
      for (const Edge& edge : nodes[i]->next)
        texts.push_back(edge.valid() ? edge_text(edge.node.get(), edge.input_nr) : "None");
      edges.push_back(std::move(texts));
    }
  }

  std::vector<std::string> roots;
  std::vector<Node*> nodes;
  std::vector<std::vector<std::string>> edges;

 private:
  std::string edge_text(Node* node, uint32_t input_nr) {
    auto [found, added] = number_.emplace(node, nodes.size());
    if (added) nodes.push_back(node);
    return fmt::format("{}.{}", found->second, input_nr);
  }
  std::unordered_map<Node*, size_t> number_;
};

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

// What our node keeps under a name: a tensor, several, or nothing.
struct Kept {
  std::string name;
  bool list = false;
  std::vector<Tensor> tensors;
};

std::vector<Kept> kept_by(Node& node) {
  std::vector<Kept> all;
  auto* op_node = dynamic_cast<OpNode*>(&node);
  if (!op_node) return all;
  for (size_t i = 0; i < op_node->saved_count(); ++i) {
    const SavedPlan& plan = op_node->op.saved[i];
    const Schema& schema = op_node->op.schema;
    Kept kept;
    kept.name = plan.result ? schema.returns[plan.index].name : schema.arguments[plan.index].name;
    kept.list = plan.result ? schema.returns[plan.index].list : schema.arguments[plan.index].list;
    try {
      if (!kept.list) kept.tensors.push_back(op_node->saved(i).unpack(node));
      for (const SavedTensor& one : op_node->saved_list(i)) kept.tensors.push_back(one.unpack(node));
    } catch (const Error&) {
      continue;  // written in place since: the framework refuses to show it, too
    }
    all.push_back(std::move(kept));
  }
  return all;
}

bool same_value(const RecordedValue& recorded, const Kept& kept, StorageMap& map) {
  if (recorded.kind == RecordedValue::Kind::none)
    return std::none_of(kept.tensors.begin(), kept.tensors.end(),
                        [](const Tensor& t) { return t.defined(); });
  std::vector<const RecordedValue*> elements;
  if (recorded.kind == RecordedValue::Kind::list) {
    for (const RecordedValue& element : recorded.list) elements.push_back(&element);
  } else {
    elements.push_back(&recorded);
  }
  if (elements.size() != kept.tensors.size()) return false;
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool defined = !elements[i]->tensor.empty();
    if (defined != kept.tensors[i].defined()) return false;
    if (defined && !same_tensor(elements[i]->tensor[0], kept.tensors[i], map)) return false;
  }
  return true;
}

std::string show(const Kept& kept, const StorageMap& map) {
  std::vector<std::string> texts;
  for (const Tensor& tensor : kept.tensors) texts.push_back(metaprof::show(tensor, map));
  return kept.list ? "(" + joined(texts) + ")" : joined(texts);
}

void compare_node(const RecordedCase& recorded, size_t index, Node& node, StorageMap& map,
                  std::vector<SavedDifference>& differences) {
  std::vector<Kept> ours = kept_by(node);
  const std::string where = fmt::format("{}:{} ", recorded.nodes[index].name, index);
  for (const RecordedSaved& saved : recorded.saved) {
    if (saved.node != index) continue;
    auto found = std::find_if(ours.begin(), ours.end(), [&](const Kept& k) { return k.name == saved.name; });
    if (found == ours.end()) {
      if (saved.value.kind != RecordedValue::Kind::none)
        differences.push_back({where + saved.name + " " + metaprof::show(saved.value), "not saved"});
      continue;
    }
    if (!same_value(saved.value, *found, map))
      differences.push_back({where + saved.name + " " + metaprof::show(saved.value),
                             where + saved.name + " " + show(*found, map)});
    ours.erase(found);
  }
  for (const Kept& kept : ours)
    for (const Tensor& tensor : kept.tensors)
      if (tensor.defined())
        differences.push_back({where + "nothing else", where + kept.name + " " + show(kept, map)});
}

}  // namespace

std::vector<SavedDifference> compare_graphs(const RecordedCase& recorded, const std::vector<Tensor>& outputs,
                                            StorageMap& map) {
  std::vector<SavedDifference> differences;
  const Graph graph(outputs);
  if (graph.roots != recorded.roots) {
    differences.push_back({"roots " + joined(recorded.roots), "roots " + joined(graph.roots)});
    return differences;
  }
  for (size_t i = 0; i < std::max(graph.nodes.size(), recorded.nodes.size()); ++i) {
    auto text = [i](size_t count, auto name, auto edges) {
      return i < count ? fmt::format("node {} {} {}", i, name(), joined(edges()))
                       : std::string("no more nodes");
    };
    const std::string expected = text(
        recorded.nodes.size(), [&] { return recorded.nodes[i].name; },
        [&] { return recorded.nodes[i].edges; });
    const std::string got = text(
        graph.nodes.size(), [&] { return graph.nodes[i]->name(); }, [&] { return graph.edges[i]; });
    if (expected == got) continue;
    differences.push_back({expected, got});
    return differences;
  }
  if (!recorded.has_saved) return differences;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    compare_node(recorded, i, *graph.nodes[i], map, differences);
  return differences;
}

}  // namespace metaprof
