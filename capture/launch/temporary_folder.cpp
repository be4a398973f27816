#include "capture/launch/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace metaprof {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const std::string& name) {
  const char* given = std::getenv("TMPDIR");
  std::string path = (fs::path(given && *given ? given : "/tmp") / (name + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) fail("{}: cannot be made ({})", path, std::strerror(errno));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code code;
  fs::remove_all(path_, code);
}

}  // namespace metaprof
