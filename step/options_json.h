#pragma once
// Options of a run as a JSON file has them, by the names of the table of options.

#include <initializer_list>
#include <string_view>

#include "core/formats/json_member.h"
#include "step/options.h"

namespace metaprof {

/// Sets those options that `json` has, but for some, and lets the rest be. Errors: a member is not what its
/// option takes.
void read_options(const Member& json, RunOptions& options,
                  std::initializer_list<std::string_view> except = {});

}  // namespace metaprof
