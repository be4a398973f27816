#include "reports/report_forms.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/rates.h"
#include "reports/exports/chrome_trace.h"
#include "reports/exports/folded.h"
#include "reports/exports/memory_snapshot.h"
#include "reports/exports/open_metrics.h"
#include "reports/page/html_page.h"
#include "reports/pictures/graph_dot.h"
#include "reports/pictures/timeline_svg.h"
#include "validation/profiles/profile_diff.h"

namespace metaprof {

namespace {

// Those of a model of equal layers, whose names can still be read on a sheet of paper.
constexpr size_t kMostNodesOfPage = 40;

}  // namespace

const std::vector<ReportForm>& report_forms() {
  static const std::vector<ReportForm> kForms = {
      {"json", "write JSON to FILE; -: to stdout, instead of the text", StepsToRun::until_alike,
       [](ReportInputs& r) { return profile_json(r.report()); }},
      {"csv", "the table as CSV, with plain numbers", StepsToRun::until_alike,
       [](ReportInputs& r) { return profile_csv(r.report(), r.text); }},
      {"html", "one page with timeline, peak and tables", StepsToRun::all,
       [](ReportInputs& r) {
         return html_page({.report = r.with_nodes(),
                           .schedule = r.schedule(),
                           .stays = r.stays(),
                           .lines = r.lines,
                           .compared = r.compared()});
       },
       true},
      {"timeline", "a still picture of the step with the peak (.svg or .png)", StepsToRun::all,
       [](ReportInputs& r) {
         return r.as_png() ? timeline_png(r.report(), r.schedule()) : timeline_svg(r.report(), r.schedule());
       }},
      {"chrome_trace", "for Perfetto and chrome://tracing", StepsToRun::all,
       [](ReportInputs& r) { return chrome_trace(r.schedule(), r.report().model); }},
      {"snapshot", "PyTorch's memory snapshot (.pickle), for pytorch.org/memory_viz", StepsToRun::all,
       [](ReportInputs& r) { return memory_snapshot(r.history()); }},
      {"folded", "the peak as folded stacks, for flame graphs", StepsToRun::until_alike,
       [](ReportInputs& r) { return folded_stacks(r.report().memory.peak.largest); }},
      {"metrics", "figures as OpenMetrics text, for CI systems that keep them", StepsToRun::until_alike,
       [](ReportInputs& r) { return open_metrics(r.report()); }},
      {"dot", "the graph of nodes in Graphviz' language", StepsToRun::until_alike,
       [](ReportInputs& r) { return graph_dot(r.with_nodes()); }},
      {"svg", "the same, drawn on a page (.svg or .png)", StepsToRun::until_alike,
       [](ReportInputs& r) {
         const std::string dot = graph_dot(r.with_nodes(), {.most_nodes = kMostNodesOfPage, .page = true});
         return r.as_png() ? png_of_dot(dot) : svg_of_dot(dot);
       }},
  };
  return kForms;
}

std::string option_of(const ReportForm& form) {
  std::string option = "--" + std::string(form.name);
  std::ranges::replace(option, '_', '-');
  return option;
}

const Schedule& ReportInputs::schedule() {
  if (!schedule_)
    schedule_ =
        metaprof::schedule(estimate_.trace, estimate_.platform.device(), rates_of(estimate_.platform));
  return *schedule_;
}

std::vector<StorageStay> ReportInputs::stays() const {
  return storage_stays(estimate_.trace, estimate_.platform.device());
}

const ProfileDiff* ReportInputs::compared() {
  if (compare.empty()) return nullptr;
  if (!compared_)
    compared_ = diff_profiles(ProfileFile(compare), ProfileFile(report().model, profile_json(report())));
  return &*compared_;
}

const ProfileReport& ReportInputs::with_nodes(std::string_view granularity) {
  if (!report().nodes)
    estimate_.report.nodes = profile_nodes(estimate_.trace, estimate_.platform.device(),
                                           *granularity_named(granularity), rates_of(estimate_.platform));
  return report();
}

AllocatorHistory ReportInputs::history() const {
  if (estimate_.platform.hardware.is_cpu())
    fail("--snapshot: {} has no caching allocator whose history could be shown",
         estimate_.platform.hardware.name);
  CachingAllocatorOptions options;
  options.conf = parse_alloc_conf(allocator_settings(estimate_.options, estimate_.platform.framework));
  options.order = estimate_.platform.framework.free_block_order;
  const Bytes total = estimate_.platform.hardware.memory;
  options.device.capacity = static_cast<uint64_t>(total.count);
  options.device.used_by_others =
      static_cast<uint64_t>((total - available_memory(estimate_.options, estimate_.platform)).count);
  return allocator_history(estimate_.trace, estimate_.platform.device(), options);
}

void check_columns(const TextOptions& text, bool per_node) {
  const std::vector<std::string> known = per_node ? node_column_names() : module_column_names();
  const auto check = [&](const char* option, const std::string& name) {
    if (std::ranges::find(known, name) == known.end())
      fail("{}: there is no column '{}' of {}; there are {}{}", option, name, per_node ? "nodes" : "modules",
           fmt::join(known, ", "), did_you_mean(name, known));
  };
  if (!text.sort.empty()) check("--sort", text.sort);
  for (const std::string& name : text.columns) check("--columns", name);
}

}  // namespace metaprof
