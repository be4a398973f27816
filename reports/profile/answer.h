#pragma once
// What was run and what came of it, in words.

#include <string>

#include "reports/profile/profile_report.h"

namespace metaprof {

/// "precision fp32, optimizer adamw, steps 3": precision, optimizer, steps, and what else is not as usual.
std::string options_text(const ProfileReport& report);

/// The verdict in sentences: what the step needs, what the device has, and what most of it is.
std::string answer(const ProfileReport& report);

}  // namespace metaprof
