#include "profiler/modules/modules.h"

#include <algorithm>
#include <map>

#include "meta/trace/module_path.h"
#include "profiler/modules/module_memory.h"

namespace metaprof {
namespace {

// Modules in the order in which they are first heard of, children after their parents.
class Tree {
 public:
  void add(std::string_view path) {
    if (indices_.contains(path)) return;
    if (!path.empty()) add(parent_path(path));
    const size_t index = nodes_.size();
    nodes_.push_back({std::string(path), {}});
    indices_.emplace(path, index);
    if (!path.empty()) nodes_[indices_.find(parent_path(path))->second].children.push_back(index);
  }

  std::vector<ModuleRow> rows() const {
    std::vector<ModuleRow> rows;
    std::vector<size_t> stack;
    if (!nodes_.empty()) stack.push_back(0);
    while (!stack.empty()) {
      const Node& node = nodes_[stack.back()];
      stack.pop_back();
      ModuleRow& row = rows.emplace_back();
      row.path = node.path;
      row.depth = path_depth(node.path);
      stack.insert(stack.end(), node.children.rbegin(), node.children.rend());
    }
    return rows;
  }

 private:
  struct Node {
    std::string path;
    std::vector<size_t> children;
  };
  std::vector<Node> nodes_;
  std::map<std::string, size_t, std::less<>> indices_;
};

std::unordered_map<std::string_view, Bytes> saved_by_module(const Trace& trace, const Saved& saved) {
  std::unordered_map<std::string_view, Bytes> by_module;
  for (const SavedStorage& storage : saved.storages)
    for (const std::string_view path : enclosing_modules(trace.text(trace.nodes[storage.node].module)))
      by_module[path] += storage.bytes;
  return by_module;
}

template <class Map>
auto value_at(const Map& map, std::string_view path) {
  const auto found = map.find(path);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

// Rows are in preorder, so going backwards the children of a row come before it.
void add_up_lists(std::vector<ModuleRow>& rows, const MemoryByModule& forward) {
  std::map<std::string_view, ModuleMemory> inside;  // by path of the parent
  for (size_t i = rows.size(); i-- > 0;) {
    ModuleRow& row = rows[i];
    if (!forward.contains(row.path)) {
      row.forward_tmp = inside[row.path].tmp;
      row.forward_out = inside[row.path].out;
    }
    if (row.path.empty()) continue;
    ModuleMemory& around = inside[parent_path(row.path)];
    around.tmp = std::max(around.tmp, row.forward_tmp);
    around.out += row.forward_out;
  }
}

}  // namespace

std::vector<ModuleRow> module_rows(const Trace& trace, Device device, const Parameters& parameters,
                                   const Saved& saved) {
  Tree tree;
  tree.add("");
  std::vector<bool> known;  // by text
  for (const Event& event : trace.events) {
    if (event.kind != Event::Kind::enter || (event.id < known.size() && known[event.id])) continue;
    if (event.id >= known.size()) known.resize(event.id + 1);
    known[event.id] = true;
    tree.add(trace.text(event.id));
  }
  for (const ParameterRecord& parameter : trace.parameters)
    for (const std::string& name : parameter.names) tree.add(parent_path(name));

  const auto kept = saved_by_module(trace, saved);
  const MemoryByModule forward = forward_memory(trace, device);
  const MemoryByModule backward = backward_memory(trace, device);
  std::vector<ModuleRow> rows = tree.rows();
  for (ModuleRow& row : rows) {
    row.parameters = value_at(parameters.by_module, row.path);
    row.saved = value_at(kept, row.path);
    const ModuleMemory in_forward = value_at(forward, row.path);
    row.forward_tmp = in_forward.tmp;
    row.forward_out = in_forward.out;
    const ModuleMemory in_backward = value_at(backward, row.path);
    row.backward_tmp = in_backward.tmp;
    row.backward_out = in_backward.out;
  }
  add_up_lists(rows, forward);
  return rows;
}

}  // namespace metaprof
