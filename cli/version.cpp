#include "cli/version.h"

namespace metaprof {

extern const char* const kCommit;  // of the build: tools/cmake/commit.cmake

std::string version_line() {
  const std::string commit = kCommit;
  return "metaprof " METAPROF_VERSION + (commit.empty() ? "" : " (" + commit + ")");
}

}  // namespace metaprof
