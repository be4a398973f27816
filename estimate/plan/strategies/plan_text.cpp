#include "estimate/plan/strategies/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "estimate/plan/strategies/path_patterns.h"

namespace metaprof {
namespace {

class Writer {
 public:
  explicit Writer(const ModuleTree& tree) : tree_(tree) {
    for (const Module& module : tree.modules)
      if (!module.path.empty()) paths_.push_back(module.path);
  }

  std::vector<std::string> words(const RecomputePlan& plan) const {
    std::vector<std::string> words;
    std::map<std::string, std::vector<std::string>> alike;  // paths by what is said of them
    std::vector<std::string> order;
    for (const PlannedRegion& region : plan) {
      const std::string said = braces(region);
      if (region.first != region.last || !region.inside.empty()) {
        words.push_back(region.first == region.last ? path(region.first) + said
                                                    : path(region.first) + ".." + path(region.last) + said);
        continue;
      }
      std::vector<std::string>& paths = alike[said];
      if (paths.empty()) order.push_back(said);
      paths.push_back(path(region.first));
    }
    for (const std::string& said : order)
      for (const std::string& pattern : path_patterns(alike[said], paths_)) words.push_back(pattern + said);
    return words;
  }

 private:
  const std::string& path(int32_t module) const { return tree_.modules[size_t(module)].path; }

  std::string braces(const PlannedRegion& region) const {
    if (region.on_host) return "{>host}";
    if (!region.inside.empty()) return fmt::format("{{{}}}", fmt::join(words(region.inside), " "));
    if (region.kept.empty()) return "";
    const ModuleClass& one = tree_.classes[size_t(tree_.modules[size_t(region.first)].of)];
    std::map<std::string, std::vector<int32_t>> numbers;
    for (const int32_t call : region.kept)
      numbers[one.calls[size_t(call)].op].push_back(one.calls[size_t(call)].number);
    std::vector<std::string> kept;
    kept.reserve(numbers.size());
    for (const auto& [op, which] : numbers) kept.push_back(fmt::format("={}:{}", op, fmt::join(which, ",")));
    return fmt::format("{{{}}}", fmt::join(kept, " "));
  }

  const ModuleTree& tree_;
  std::vector<std::string> paths_;
};

}  // namespace

std::vector<std::string> plan_words(const ModuleTree& tree, const RecomputePlan& plan) {
  return Writer(tree).words(plan);
}

}  // namespace metaprof
