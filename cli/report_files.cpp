#include "cli/report_files.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/estimate.h"
#include "core/error.h"
#include "profiler/allocator_history.h"
#include "reports/chrome_trace.h"
#include "reports/folded.h"
#include "reports/graph_dot.h"
#include "reports/html_page.h"
#include "reports/memory_snapshot.h"

namespace metaprof {
namespace {

// The results from which reports are made, each computed when a report first asks for it.
class Results {
 public:
  Results(const ReportSources& sources, ProfileReport& report, const TextOptions& text)
      : text(text), report_(report), sources_(sources) {}

  const ProfileReport& report() const { return report_; }
  const Schedule& schedule() {
    if (!schedule_)
      schedule_ = metaprof::schedule(sources_.trace, sources_.device.type, rates_of(sources_.device));
    return *schedule_;
  }
  const std::vector<LargeStorage>& at_peak() {
    if (!at_peak_) {
      const auto& failed = report_.memory.phases.out_of_memory;
      at_peak_ =
          peak_moment(sources_.trace, sources_.device.type, SIZE_MAX, failed ? failed->event : SIZE_MAX)
              .largest;
    }
    return *at_peak_;
  }
  const ProfileReport& with_nodes(const std::string& granularity = "module") {
    if (!report_.nodes)
      report_.nodes = profile_nodes(sources_.trace, sources_.device.type, *granularity_named(granularity),
                                    rates_of(sources_.device));
    return report_;
  }
  AllocatorHistory history() const {
    if (sources_.device.type != DeviceType::cuda)
      fail("--snapshot: {} has no caching allocator whose history could be shown", sources_.device.name);
    CachingAllocatorOptions options;
    options.conf = parse_alloc_conf(sources_.alloc_conf);
    options.device.capacity = static_cast<uint64_t>(sources_.device.memory.count);
    return allocator_history(sources_.trace, options);
  }

  const TextOptions& text;

 private:
  ProfileReport& report_;
  const ReportSources& sources_;
  std::optional<Schedule> schedule_;
  std::optional<std::vector<LargeStorage>> at_peak_;
};

// A form of report: its option and how it is made.
struct Form {
  const char* option;
  const char* what;
  std::string ReportFiles::*file;
  std::string (*make)(Results&);
};

constexpr Form kForms[] = {
    {"--json", "write JSON to FILE; -: to stdout, in place of the text", &ReportFiles::json,
     [](Results& r) { return profile_json(r.report()); }},
    {"--csv", "the table as CSV, with plain numbers", &ReportFiles::csv,
     [](Results& r) { return profile_csv(r.report(), r.text); }},
    {"--html", "one page with timeline, peak and tables", &ReportFiles::html,
     [](Results& r) { return html_page(r.with_nodes(), r.schedule(), r.at_peak()); }},
    {"--chrome-trace", "for Perfetto and chrome://tracing", &ReportFiles::chrome_trace,
     [](Results& r) { return chrome_trace(r.schedule(), r.report().model); }},
    {"--snapshot", "PyTorch's memory snapshot (.pickle), for pytorch.org/memory_viz", &ReportFiles::snapshot,
     [](Results& r) { return memory_snapshot(r.history()); }},
    {"--folded", "the peak as folded stacks, for flame graphs", &ReportFiles::folded,
     [](Results& r) { return folded_stacks(r.at_peak()); }},
    {"--dot", "the graph of nodes in Graphviz' language", &ReportFiles::dot,
     [](Results& r) { return graph_dot(r.with_nodes()); }},
    {"--svg", "the same, drawn", &ReportFiles::svg,
     [](Results& r) { return svg_of_dot(graph_dot(r.with_nodes())); }},
};

}  // namespace

bool ReportFiles::takes_stdout() const {
  return std::any_of(std::begin(kForms), std::end(kForms),
                     [this](const Form& form) { return this->*form.file == "-"; });
}

void check_report_options(const ReportFiles& files, const TextOptions& text) {
  const std::vector<std::string> known = files.per_node ? node_column_names() : module_column_names();
  const auto check = [&](const char* option, const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("{}: there is no column '{}' of {}; there are {}", option, name,
           files.per_node ? "nodes" : "modules", fmt::join(known, ", "));
  };
  if (!text.sort.empty()) check("--sort", text.sort);
  for (const std::string& name : text.columns) check("--columns", name);
  const Form* first = nullptr;
  for (const Form& form : kForms) {
    if (files.*form.file != "-") continue;
    if (first) fail("{} and {} cannot both go to stdout", first->option, form.option);
    first = &form;
  }
}

void add_report_file_options(CLI::App& command, const std::string& group, ReportFiles& files) {
  for (const Form& form : kForms)
    command.add_option(form.option, files.*form.file, form.what)
        ->option_text("FILE")
        ->group(group)
        ->allow_extra_args(false);
  command.add_flag("--markdown", files.markdown, "print Markdown in place of the text")->group(group);
  command.add_flag("--per-node", files.per_node, "a table of nodes (calls) in place of modules")
      ->group(group);
  command.add_option("--granularity", files.granularity, "of nodes: module, function or operator")
      ->option_text("WORD")
      ->group(group)
      ->check(CLI::IsMember({"module", "function", "operator"}))
      ->capture_default_str();
}

void write_report_files(const ReportSources& sources, const ReportFiles& files, const TextOptions& text,
                        ProfileReport& report) {
  Results results(sources, report, text);
  if (files.per_node) results.with_nodes(files.granularity);
  for (const Form& form : kForms)
    if (!(files.*form.file).empty()) write_result(files.*form.file, form.make(results));
  if (!files.per_node) report.nodes.reset();
}

}  // namespace metaprof
