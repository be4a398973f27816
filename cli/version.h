#pragma once

#include <string>

namespace metaprof {

/// "metaprof 0.3.0 (53149f918a)"; without git no commit.
std::string version_line();

}  // namespace metaprof
