#include "estimate/plan/module_lists.h"

#include <map>
#include <set>

#include "meta/trace/module_path.h"

namespace metaprof {
namespace {

// Where a module's calls lie in the program.
struct Stretch {
  size_t begin = 0, end = 0;
  std::set<std::string> keys;  // of its calls
};

// A list is never called itself; of what is called only a Sequential runs its modules one after the other.
bool is_container(const Program& program, const std::map<std::string, Stretch>& stretches,
                  const std::string& path) {
  const auto type = program.module_types.find(path);
  if (!stretches.contains(path)) return !path.empty();
  return type != program.module_types.end() && type->second.ends_with(".Sequential");
}

std::map<std::string, Stretch> stretches_of(const Program& program) {
  std::map<std::string, Stretch> stretches;
  for (size_t node = 0; node < program.graph.nodes.size(); ++node) {
    const int32_t modules = program.graph.nodes[node].modules;
    if (modules < 0) continue;
    for (const ModuleCall& call : program.module_stacks[size_t(modules)]) {
      Stretch& stretch = stretches[call.path];
      if (stretch.keys.empty()) stretch.begin = node;
      stretch.end = node + 1;
      stretch.keys.insert(call.key);
    }
  }
  return stretches;
}

bool is_in_list(const ModuleTree& tree, const std::map<std::string, size_t>& index, std::string_view path) {
  for (const std::string_view outer : enclosing_modules(parent_path(path)))
    if (const auto found = index.find(std::string(outer)); found != index.end())
      if (tree.modules[found->second].list >= 0) return true;
  return false;
}

}  // namespace

void find_module_lists(const Program& program, ModuleTree& tree) {
  const std::map<std::string, Stretch> stretches = stretches_of(program);
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < tree.modules.size(); ++i) index[tree.modules[i].path] = i;
  int32_t lists = 0;
  std::map<std::string, const Module*> last;  // by container
  for (Module& module : tree.modules) {
    const std::string container(parent_path(module.path));
    if (module.path.empty() || !is_container(program, stretches, container)) continue;
    const Stretch& own = stretches.at(module.path);
    if (own.keys.size() != 1 || is_in_list(tree, index, module.path)) continue;
    const Module*& before = last[container];
    const bool goes_on = before && stretches.at(before->path).end == own.begin;
    module.list = goes_on ? before->list : lists++;
    before = &module;
  }
}

}  // namespace metaprof
