#include "cli/commands/run_fixes.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/launch/fixes.h"
#include "cli/line/console.h"
#include "estimate/search/captured_advice.h"

namespace metaprof {
namespace {

// Of the process with the highest peak, which is the first that was captured.
void add_captured(const LaunchOptions& options, const std::string& context, TriedFixes& fixes) {
  if (fixes.captured.empty()) return;
  Program program = fixes.captured.front().second;
  program.captured->memory = options.device.memory.count;
  const bool has_batch =
      std::ranges::any_of(fixes.rows, [](const TriedFix& fix) { return fix.name.starts_with("batch="); });
  for (const CapturedAdvice& advice : captured_advice(program, context, has_batch ? 0 : fixes.batch))
    fixes.rows.push_back(
        {advice.name, advice.change, advice.allocated, advice.reserved, advice.fits, false, {}, true});
}

}  // namespace

void try_all_fixes(const LaunchOptions& options, const std::string& context, RunReport& report,
                   const std::function<bool(const RunReport&)>& fits) {
  try_fixes(options, report, fits, [](const std::string& change) {
    message(fmt::format("the program runs again with: {}", change));
  });
  add_captured(options, context, *report.fixes);
  sort_fixes(report.fixes->rows);
}

}  // namespace metaprof
