#include "cli/version.h"

namespace metaprof {

extern const char *const kCommit, *const kCommitDate;  // of the build: tools/cmake/commit.cmake

std::string version_line() {
  const std::string commit = kCommit;
  return "metaprof " METAPROF_VERSION + (commit.empty() ? "" : " (" + commit + ")");
}

std::string commit_date() { return kCommitDate; }

}  // namespace metaprof
