#pragma once

#include <string>

namespace metaprof {

/// "metaprof 0.3.0 (53149f918a)"; without git no commit.
std::string version_line();

/// The day of that commit, "2026-11-28"; without git empty.
std::string commit_date();

}  // namespace metaprof
