#pragma once
// Two profiles compared: what `metaprof diff` shows.

#include <string>

#include "validation/results/profile_diff.h"

namespace metaprof {

/// In a few lines what is reserved and which kinds of memory changed; then all totals, and `top` of the other figures, those
/// of bytes that changed most first; negative: all, in the order of the reports. `width`: as in TextTable::text.
std::string diff_text(const ProfileDiff& diff, int top, size_t width = 0);
/// Markdown, as for a comment on a pull request: peaks, kinds of memory, and the modules whose saved bytes changed most.
std::string diff_markdown(const ProfileDiff& diff);
std::string diff_json(const ProfileDiff& diff);

}  // namespace metaprof
