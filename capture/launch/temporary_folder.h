#pragma once

#include <filesystem>
#include <string>

namespace metaprof {

/// A folder in TMPDIR, or /tmp, that goes with everything in it.
class TemporaryFolder {
 public:
  /// `name`: begins the folder's. Errors: it cannot be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace metaprof
