#pragma once
// Options of `metaprof profile` that write reports beside the text: one option for each form, each with a
// file
// (`-`: stdout, in place of the text).

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "meta/platform/profile.h"
#include "reports/profile_report.h"

namespace metaprof {

struct ReportFiles {
  bool per_node = false;
  std::string granularity = "module";
  bool markdown = false;
  std::string json, csv, html, dot, svg, chrome_trace, snapshot, folded;

  /// Some file is stdout, so that the text is not printed.
  bool takes_stdout() const;
};

/// Errors: a name of `--sort` or `--columns` that is no column of the table; two reports for stdout.
void check_report_options(const ReportFiles& files, const TextOptions& text);

void add_report_file_options(CLI::App& command, const std::string& group, ReportFiles& files);

/// What the reports are made of.
struct ReportSources {
  const Trace& trace;
  const DeviceProfile& device;
  std::string alloc_conf;
};

/// Runs the passes that the options ask for, and writes their files. `report` gets its nodes if they were
/// asked for. Errors: a file cannot be written; a form does not fit the device.
void write_report_files(const ReportSources& sources, const ReportFiles& files, const TextOptions& text,
                        ProfileReport& report);

}  // namespace metaprof
