#pragma once
// A file that is in memory alone, for readers that go back and forth in what came through a pipe.

#include <string>

namespace metaprof {

class FileInMemory {
 public:
  /// Errors: the system has no memory for it.
  explicit FileInMemory(const std::string& text);
  ~FileInMemory();
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;

  /// For whoever opens files by their paths, in this process and while this object lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace metaprof
