#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace metaprof {

// The lines of a gzip file (or of the same text unpacked), one after the other.
class GzLines {
 public:
  // Throws Error if the file cannot be read.
  explicit GzLines(const std::filesystem::path& path);
  ~GzLines();
  GzLines(const GzLines&) = delete;
  GzLines& operator=(const GzLines&) = delete;

  // The next line without its end, valid until the next call; false after the last. Throws Error, naming the
  // line, for damaged or truncated data and for a line of more than a mebibyte.
  bool next(std::string_view& line);

  // Of the line that next gave; 1 is the first.
  std::size_t number() const { return number_; }

 private:
  void fill();

  std::string path_;
  void* file_ = nullptr;  // gzFile
  std::string buffer_;
  std::size_t begin_ = 0;  // of what next has not given yet
  bool at_end_ = false;
  std::size_t number_ = 0;
};

}  // namespace metaprof
