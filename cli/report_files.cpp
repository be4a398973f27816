#include "cli/report_files.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/estimate.h"
#include "meta/core/error.h"

namespace metaprof {
namespace {

// A form of report: its option and how it is made.
struct Form {
  const char* option;
  const char* what;
  std::string ReportFiles::*file;
};

constexpr Form kForms[] = {
    {"--json", "write JSON to FILE; -: to stdout, in place of the text", &ReportFiles::json},
    {"--csv", "write the table as CSV, with plain numbers", &ReportFiles::csv},
};

}  // namespace

bool ReportFiles::takes_stdout() const {
  for (const Form& form : kForms)
    if (this->*form.file == "-") return true;
  return false;
}

void check_columns(const ReportFiles& files, const TextOptions& text) {
  const std::vector<std::string> known = files.per_node ? node_column_names() : module_column_names();
  const auto check = [&](const char* option, const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("{}: there is no column '{}' of {}; there are {}", option, name,
           files.per_node ? "nodes" : "modules", fmt::join(known, ", "));
  };
  if (!text.sort.empty()) check("--sort", text.sort);
  for (const std::string& name : text.columns) check("--columns", name);
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

void write_report_files(const Trace& trace, const DeviceProfile& device, const ReportFiles& files,
                        const TextOptions& text, ProfileReport& report) {
  if (files.per_node)
    report.nodes = profile_nodes(trace, device.type, *granularity_named(files.granularity), rates_of(device));
  if (!files.json.empty()) write_result(files.json, profile_json(report));
  if (!files.csv.empty()) write_result(files.csv, profile_csv(report, text));
}

}  // namespace metaprof
