#include "capture/launch/fixes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

namespace metaprof {
namespace {

constexpr std::string_view kExpandable = "expandable_segments";

// capture/recorder/metaprof_recorder/program/fixes.py makes them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kChanges = {{
    {kExpandable, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {"checkpoint",
     "model.gradient_checkpointing_enable(), or torch.utils.checkpoint.checkpoint(block, …, "
     "use_reentrant=False) of each block"},
    {"no_grad", "with torch.no_grad(): around the calls of models in eval mode"},
    {"empty_cache", "torch.cuda.empty_cache() between training and evaluation"},
    {"map_location", "torch.load(…, map_location=\"cpu\")"},
    {"bucket_view", "DistributedDataParallel(…, gradient_as_bucket_view=True)"},
    {"autocast_cache", "torch.autocast(…, cache_enabled=False)"},
    {"set_to_none", "optimizer.zero_grad(set_to_none=True)"},
    {"fused", "the optimizer with fused=True"},
    {"foreach", "the optimizer with foreach=False"},
}};

std::vector<std::string> names_of(const RunReport& report) {
  std::vector<std::string> names = report.possible_fixes;
  const bool is_expandable = std::ranges::any_of(report.ranks, [](const RankRun& rank) {
    return rank.alloc_conf.find("expandable_segments:True") != std::string::npos;
  });
  if (!is_expandable) names.emplace_back(kExpandable);
  return names;
}

TriedFix try_fix(LaunchOptions options, const std::string& name, const RunReport& before,
                 const std::function<bool(const RunReport&)>& fits) {
  TriedFix fix{name, change_of(name), {}, {}, false, false, {}};
  if (name == kExpandable)
    options.alloc_conf += (options.alloc_conf.empty() ? "" : ",") + std::string("expandable_segments:True");
  else
    options.fix = name;
  options.silent = true;
  options.save.clear();
  options.events = false;
  const RunReport report = run_recorded(options, {});
  if (!report.problem.empty() || (report.ended != before.ended && !report.ended.empty())) {
    fix.ended = report.problem.empty() ? report.ended : report.problem;
    return fix;
  }
  for (const RankRun& rank : report.ranks) {
    fix.allocated = std::max(fix.allocated, Bytes{rank.memory.phases.peak.allocated_bytes.peak});
    fix.reserved = std::max(fix.reserved, Bytes{rank.memory.phases.peak.reserved_bytes.peak});
    fix.ran_out |= !rank.recorded.out_of_memory.empty() && !rank.reserved_since_recovery;
  }
  fix.fits = fits(report);
  return fix;
}

}  // namespace

std::string change_of(const std::string& name) {
  for (const auto& [known, change] : kChanges)
    if (known == name) return std::string(change);
  return name;
}

void try_fixes(const LaunchOptions& options, RunReport& report,
               const std::function<bool(const RunReport&)>& fits,
               const std::function<void(const std::string&)>& tell) {
  std::vector<TriedFix> tried;
  for (const std::string& name : names_of(report)) {
    if (tell) tell(change_of(name));
    tried.push_back(try_fix(options, name, report, fits));
  }
  std::ranges::stable_sort(
      tried, {}, [](const TriedFix& fix) { return std::tuple(!fix.ended.empty(), !fix.fits, fix.reserved); });
  report.fixes = std::move(tried);
}

}  // namespace metaprof
