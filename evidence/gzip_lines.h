#pragma once
// The lines of a gzipped (or plain) text file, one after the other.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;

namespace metaprof {

class GzipLines {
 public:
  /// An Error if the file cannot be opened.
  explicit GzipLines(std::string path);
  ~GzipLines();
  GzipLines(const GzipLines&) = delete;

  /// The next line without its end, valid until the next call; false at the end of the file. Errors: the
  /// compressed data is broken or ends too early, a line is longer than 16 MiB.
  bool next(std::string_view& line);
  /// Number of the last line, from 1.
  int64_t number() const { return number_; }
  const std::string& path() const { return path_; }

 private:
  bool fill();

  std::string path_;
  gzFile_s* file_ = nullptr;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace metaprof
