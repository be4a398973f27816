#pragma once
// One page of HTML with everything in it: the live bytes over the run with zoom and hover, the peak as a
// treemap by module, tables with search. It needs no network and no server.

#include <string>

#include "profiler/schedule.h"
#include "reports/profile_report.h"

namespace metaprof {

/// `at_peak` must list every storage that is alive at the peak. The data of the page, as reports/page/page.js
/// reads it: {"model", "device", "options": text, "facts": [[label, bytes or text]], "categories", "names",
/// "events", "peak_event", "phases": [[name, begin, end]], "changes": five numbers each: events since the
/// change before, index of the operator's name, of the module's, category, bytes; "at_peak": [[bytes,
/// category, module, label]], "tables": [{"title", "words", "columns": [[title, measure]], "rows"}]}.
std::string html_page(const ProfileReport& report, const Schedule& schedule,
                      const std::vector<LargeStorage>& at_peak);

}  // namespace metaprof
