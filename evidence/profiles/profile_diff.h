#pragma once
// Two reports of steps compared, figure by figure.

#include "evidence/profiles/profile_file.h"
#include "evidence/results/profile_diff.h"

namespace metaprof {

ProfileDiff diff_profiles(const ProfileFile& before, const ProfileFile& after);

}  // namespace metaprof
