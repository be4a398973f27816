#include "estimate/plan/plan_files.h"

#include <filesystem>

#include "core/formats/file.h"
#include "core/formats/json.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;

GivenPlan plan_of(const Json& json, const std::string& file) {
  GivenPlan plan;
  const Json name = json.find("strategy");
  plan.name = name ? name.string() : std::filesystem::path(file).stem().string();
  const Json checkpoint = json.at("checkpoint");
  if (checkpoint.is_string())
    plan.patterns.push_back(checkpoint.string());
  else
    checkpoint.for_each([&](const Json& pattern) { plan.patterns.push_back(pattern.string()); });
  return plan;
}

}  // namespace

std::vector<GivenPlan> read_plans(const std::string& file) {
  const std::string text = read_file(file, kMostBytes, "a plan");
  const JsonDocument document(text, file);
  const Json root = document.root();
  std::vector<GivenPlan> plans;
  for (const char* list : {"strategies", "curve"})
    if (const Json several = root.find(list))
      several.for_each([&](const Json& one) { plans.push_back(plan_of(one, file)); });
  if (plans.empty()) plans.push_back(plan_of(root, file));
  return plans;
}

}  // namespace metaprof
