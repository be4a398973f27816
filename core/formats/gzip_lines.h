#pragma once
// The lines of a gzipped (or plain) text file, one after the other.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;

namespace metaprof {

class GzipLines {
 public:
  /// `what`: "a recording", for messages. Errors: as size_of_file, or it cannot be opened.
  GzipLines(const std::filesystem::path& path, std::string_view what);
  ~GzipLines();
  GzipLines(const GzipLines&) = delete;
  GzipLines& operator=(const GzipLines&) = delete;

  /// The next line without its end, valid until the next call; false at the end of the file. Errors, each with
  /// the line: the data are damaged or end too early, the last line has no end, a line is longer than 16 MiB.
  bool next(std::string_view& line);
  /// Number of the line that `next` gave, from 1.
  int64_t number() const { return number_; }
  const std::string& path() const { return path_; }

 private:
  bool fill();
  [[noreturn]] void broken(std::string_view what) const;

  std::string path_;
  gzFile_s* file_ = nullptr;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // in the buffer: what `next` has not given yet
  int64_t number_ = 0;
};

}  // namespace metaprof
