#pragma once
// Two reports of steps compared, figure by figure.

#include "validation/profiles/profile_file.h"
#include "validation/results/profile_diff.h"

namespace metaprof {

ProfileDiff diff_profiles(const ProfileFile& before, const ProfileFile& after);

}  // namespace metaprof
