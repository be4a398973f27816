#pragma once
// The forms in which an estimate is written to a file. A form is added here alone: a function of the results,
// and its row in the table.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/estimate.h"
#include "profiler/allocator/allocator_history.h"
#include "profiler/schedule.h"
#include "profiler/storages/storage_stays.h"
#include "profiler/timeline.h"
#include "reports/profile/profile_report.h"
#include "reports/sections/peak_contributors.h"
#include "validation/results/profile_diff.h"

namespace metaprof {

/// What reports are made from, each computed when a report first asks for it.
class ReportInputs {
 public:
  /// `estimate`: its report gets its nodes if they are asked for.
  ReportInputs(Estimate& estimate, const TextOptions& text) : text(text), estimate_(estimate) {}

  const ProfileReport& report() const { return estimate_.report; }
  const ProfileReport& with_nodes(std::string_view granularity = "module");
  const Schedule& schedule();
  /// Every storage of the run, with the time for which it is alive.
  std::vector<StorageStay> stays() const;
  /// What differs from the report in `compare`; null: none is named. Errors: as ProfileFile.
  const ProfileDiff* compared();
  /// Errors: the device has no caching allocator.
  AllocatorHistory history() const;

  const TextOptions& text;
  SourceLines lines;    ///< of the model; empty: they are not known
  std::string compare;  ///< the file of another report; empty: none
  std::string file;     ///< that the form is made for: a picture is what its ending says
  bool as_png() const { return file.ends_with(".png"); }

 private:
  Estimate& estimate_;
  std::optional<Schedule> schedule_;
  std::optional<ProfileDiff> compared_;
};

struct ReportForm {
  std::string_view name;  ///< "chrome_trace"; its option is --chrome-trace
  std::string_view what;  ///< of its file, for the help
  StepsToRun steps;       ///< of which it speaks
  std::string (*make)(ReportInputs& inputs);
  bool shows_advice = false;  ///< what each switch would give, where a step does not fit
};

const std::vector<ReportForm>& report_forms();
/// "--chrome-trace"
std::string option_of(const ReportForm& form);

/// Errors: a name of --sort or --columns that is no column of the table.
void check_columns(const TextOptions& text, bool per_node);

}  // namespace metaprof
