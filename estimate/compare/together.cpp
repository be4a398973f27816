#include "estimate/compare/together.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/json_member.h"
#include "core/rounding.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/model.h"

namespace metaprof {
namespace {

struct Report {
  TogetherRow row;
  std::string device;  ///< on which it was made
  bool ran_out = false;
};

Report of_profile(const Member& root) {
  Report report;
  const Member verdict = root.at("verdict");
  report.device = root.at("device").text();
  report.row.what = root.at("model").text();
  const std::optional<int64_t> reserved = verdict.optional_count("reserved_bytes");
  report.ran_out = !reserved;
  report.row.reserved = {reserved.value_or(0)};
  report.row.outside = {verdict.at("outside_bytes").count()};
  if (const auto least = verdict.optional_count("runs_from_bytes")) report.row.runs_from = Bytes{*least};
  return report;
}

// The rank that takes the most; each of the others has a card of its own.
Report of_run(const Member& root) {
  Report report;
  report.device = root.at("device").text();
  root.at("program").for_each(
      [&](const Member& word) { report.row.what += (report.row.what.empty() ? "" : " ") + word.text(); });
  root.at("ranks").for_each([&](const Member& rank) {
    // What came before the program caught an out-of-memory does not count.
    const auto recovered = rank.optional_count("reserved_since_recovery");
    const Bytes reserved{recovered ? *recovered : rank.at("peak").at("reserved_bytes").count()};
    report.ran_out = report.ran_out || (rank.find("out_of_memory") && !recovered);
    if (reserved < report.row.reserved) return;
    report.row.reserved = reserved;
    report.row.runs_from.reset();
    if (const auto least = rank.optional_count("runs_from_bytes")) report.row.runs_from = Bytes{*least};
    const Member outside = rank.at("outside_allocator");  // of a real card measured, with the libraries
    const auto context = outside.optional_count("context");
    report.row.outside = {context ? *context : outside.optional_count("libraries").value_or(0)};
  });
  return report;
}

Report read_report(const std::string& file) {
  const JsonText text(read_text_file(file), file,
                      "a report is what `metaprof profile --json` and `metaprof run --json` write");
  const Member root = text.root();
  const std::string schema = root.at("schema").text();
  if (schema != "metaprof.profile" && schema != "metaprof.run")
    fail("{}: is a {}; together reads reports of metaprof profile --json and metaprof run --json", file,
         schema);
  Report report = schema == "metaprof.profile" ? of_profile(root) : of_run(root);
  report.row.file = file;
  if (report.ran_out)
    fail("{}: memory ran out, so that what it would take is not known; make the report with more --memory",
         file);
  return report;
}

// What is left when each has its least is shared by how much more each would take.
void set_limits(TogetherReport& report) {
  const Bytes spare = report.usable() - report.least();
  const Bytes wanted = report.takes() - report.least();
  constexpr int64_t kSegment = int64_t{2} << 20;  // what an allocator takes at once, at the least
  for (TogetherRow& row : report.rows) {
    const double share = wanted.count <= 0 ? 0
                                           : static_cast<double>((row.takes() - row.least()).count) /
                                                 static_cast<double>(wanted.count);
    row.limit = row.reserved;
    if (report.fits_with_limits()) {
      const auto more = static_cast<int64_t>(share * static_cast<double>(spare.count)) / kSegment * kSegment;
      row.limit = std::min(row.reserved, row.runs_from.value_or(row.reserved) + Bytes{more});
    }
    row.fraction = static_cast<double>(row.limit.count) / static_cast<double>(report.memory.count);
  }
}

}  // namespace

TogetherReport together(const std::vector<std::string>& files, const RunOptions& options) {
  std::vector<Report> reports;
  reports.reserve(files.size());
  for (const std::string& file : files) reports.push_back(read_report(file));
  RunOptions run = options;
  if (!run.step.given.contains("device")) run.device = reports[0].device;
  const Platform platform = device_of(run);
  TogetherReport result{.device = platform.hardware.name,
                        .title = platform.hardware.title,
                        .memory = platform.hardware.memory,
                        .margin = margin_of(run),
                        .rows = {},
                        .notes = {}};
  for (Report& report : reports) {
    if (report.device != result.device) {
      report.row.outside = outside_of(run, platform).most;
      const std::string note = fmt::format(
          "{} was made for {}: its allocator is taken to reserve the same on {}, where kernels "
          "and their workspaces may "
          "differ",
          report.row.file, report.device, result.device);
      if (std::ranges::find(result.notes, note) == result.notes.end()) result.notes.push_back(note);
    } else if (!run.context.empty()) {
      report.row.outside = outside_of(run, platform).most;
    }
    result.rows.push_back(std::move(report.row));
  }
  set_limits(result);
  return result;
}

}  // namespace metaprof
