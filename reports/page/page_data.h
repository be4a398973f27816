#pragma once
// What the page shows, as the scripts of reports/page read it. Bytes, FLOPs and events are plain numbers, times
// nanoseconds of an ideal device. Indices into "names" stand for texts: names[0] is "".
//
//   model, device, framework, options, verdict, answer   texts
//   fits                 true or false
//   room                 {memory, outside, kept_free, reserved (at most, without a limit), at_least (more than that),
//                        live (bytes at the peak, by category)}
//   facts                [[label, measure, number] …]
//   categories, names    texts
//   events, peak_event   how many were run; that of the peak
//   limit                what the allocator can have
//   failed               null, or the request that failed: {event, op, module, requested, allocated, reserved}
//   phases               [[name, step (from 1; 0: before the first), first event, event behind it, reserved at most] …]
//   moments              four numbers each, of an event that changed what is alive: events and nanoseconds since the
//                        one before, operator, module
//   stays                eight numbers each: moments since the beginning of the stay before, moments that it lasts (0: to
//                        the end), bytes, category, operator, module, tensor, line of the source
//   peak_contributors             [[bytes, what, line] …]: what is alive at the peak, in groups
//   advice               [[change, allocated, reserved, FLOPs of a step, fits] …], the run as it is first; may be empty
//   compared             null, or {before, after (names of reports), options: texts, rows: [[figure, before, after] …]}
//   tables               [{title, words: titles, columns: [[title, measure, has a sum] …], rows: [[words …, figures …] …]} …]:
//                        modules, with types and lines; nodes, if they were asked for

#include <string>
#include <vector>

#include "profiler/schedule.h"
#include "profiler/storages/storage_stays.h"
#include "reports/profile/profile_report.h"
#include "validation/results/profile_diff.h"

namespace metaprof {

struct PageInput {
  const ProfileReport& report;  ///< its advice and nodes are shown if they are there
  const Schedule& schedule;
  const std::vector<StorageStay>& stays;  ///< all of the run
  const SourceLines& lines;               ///< empty: they are not known
  const ProfileDiff* compared = nullptr;  ///< from another report to this one; null: none was given
};

std::string page_data(const PageInput& input);

}  // namespace metaprof
