#include "estimate/plan/module_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/dtype.h"
#include "core/shape.h"
#include "program/visit.h"

namespace metaprof {
namespace {

class Classifier {
 public:
  explicit Classifier(const Program& program) : program_(program) {}

  ModuleTree classify() {
    tree_.modules.push_back({});
    calls_.emplace_back();
    types_.emplace_back();
    if (const auto root = program_.module_types.find(""); root != program_.module_types.end())
      types_[0] = root->second;
    for (const GraphNode& node : program_.graph.nodes) add(node);
    // What is inside a module came after it.
    for (size_t i = tree_.modules.size(); i-- > 0;) set_class(i);
    return std::move(tree_);
  }

 private:
  // What a module does, in order: a call as text, or a module that it calls.
  struct Call {
    std::string text;
    int32_t module = -1;
  };

  void add(const GraphNode& node) {
    size_t module = 0;
    if (node.modules >= 0)
      for (const ModuleCall& call : program_.module_stacks[size_t(node.modules)])
        module = enter(module, call);
    std::string text = node.op;
    for_each_argument(node, [&](ValueId value) { text += shape_text(value); });
    for (const Target& target : node.targets)
      for (const ValueId value : target.values) text += ">" + shape_text(value);
    calls_[module].push_back({.text = std::move(text)});
  }

  size_t enter(size_t outer, const ModuleCall& call) {
    if (call.path.empty()) return 0;
    const auto [found, is_new] = index_.try_emplace(call.path, tree_.modules.size());
    if (is_new) {
      tree_.modules.push_back({.path = call.path, .of = 0, .inside = {}});
      tree_.modules[outer].inside.push_back(static_cast<int32_t>(found->second));
      calls_.emplace_back();
      types_.push_back(call.type);
    }
    auto& calls = calls_[outer];
    const auto module = static_cast<int32_t>(found->second);
    if (calls.empty() || calls.back().module != module) calls.push_back({.text = {}, .module = module});
    return found->second;
  }

  std::string shape_text(ValueId value) const {
    if (value == kNoValue) return ",-";
    const auto& tensor = program_.graph.values[size_t(value)].tensor;
    if (!tensor) return ",number";
    return fmt::format(",{}{}{}", short_name(tensor->dtype), to_string(SizesView(tensor->sizes)),
                       tensor->requires_grad ? "*" : "");
  }

  void set_class(size_t module) {
    std::string text = types_[module];
    for (const Call& call : calls_[module])
      text += call.module < 0 ? ";" + call.text : fmt::format(";@{}", tree_.modules[size_t(call.module)].of);
    const auto [found, is_new] = classes_.try_emplace(text, static_cast<int32_t>(tree_.classes.size()));
    tree_.modules[module].of = found->second;
    if (!is_new) return;
    ModuleClass& one = tree_.classes.emplace_back();
    one.type = types_[module];
    std::map<int32_t, int32_t> parts;
    for (const int32_t inner : tree_.modules[module].inside) ++parts[tree_.modules[size_t(inner)].of];
    for (const auto& [of, count] : parts) one.parts.push_back({.of = of, .count = count});
  }

  const Program& program_;
  ModuleTree tree_;
  std::vector<std::vector<Call>> calls_;              // per module
  std::vector<std::string> types_;                    // per module
  std::unordered_map<std::string, size_t> index_;     // by path
  std::unordered_map<std::string, int32_t> classes_;  // by what a module does
};

}  // namespace

ModuleTree module_classes(const Program& program) { return Classifier(program).classify(); }

}  // namespace metaprof
