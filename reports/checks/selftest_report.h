#pragma once
// What `metaprof selftest` found.

#include <string>
#include <string_view>

#include "capture/selftest/selftest.h"

namespace metaprof {

/// A line for each program, then the phases that differ. The first line says how many are equal.
std::string selftest_text(const SelftestReport& report);
/// Schema metaprof.selftest: the machine, versions, the date, and every figure of every phase. `version`: of this program.
std::string selftest_json(const SelftestReport& report, std::string_view version);

}  // namespace metaprof
