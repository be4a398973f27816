#pragma once

#include <string>

#include "profiler/schedule.h"
#include "reports/profile/profile_report.h"

namespace metaprof {

/// A still picture of the step with the peak: live bytes by category over the time of an ideal device, the phases, what
/// the allocator can have, and the peak. SVG that needs nothing else, 960 by 420, dark on white.
std::string timeline_svg(const ProfileReport& report, const Schedule& schedule);
/// The same as PNG, 1920 by 840. Errors: as png_of_dot.
std::string timeline_png(const ProfileReport& report, const Schedule& schedule);

}  // namespace metaprof
