#include "evidence/allocator/gz_lines.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace metaprof {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

}  // namespace

GzLines::GzLines(const std::filesystem::path& path) : path_(path.string()) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    fail("{}: is a folder; name the log files in it", path_);
  }
  file_ = gzopen(path_.c_str(), "rb");
  if (file_ == nullptr) fail("{}: cannot be opened: {}", path_, std::strerror(errno));
}

GzLines::~GzLines() { gzclose(static_cast<gzFile>(file_)); }

bool GzLines::next(std::string_view& line) {
  std::size_t from = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', from);
    if (end != std::string::npos) {
      line = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      ++number_;
      return true;
    }
    if (at_end_) break;
    if (buffer_.size() - begin_ > kLongestLine) {
      fail("{}, line {}: has more than {} characters; this is no recording", path_, number_ + 1,
           kLongestLine);
    }
    from = buffer_.size() - begin_;
    fill();
  }
  if (begin_ == buffer_.size()) return false;
  fail("{}, line {}: ends in the middle of the line; the file is truncated", path_, number_ + 1);
}

// Appends the next chunk of the file, after what is left of the last one.
void GzLines::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  const auto file = static_cast<gzFile>(file_);
  const int got = gzread(file, buffer_.data() + kept, kChunk);
  int status = Z_OK;
  const char* text = gzerror(file, &status);
  buffer_.resize(kept + static_cast<std::size_t>(got > 0 ? got : 0));
  if (status == Z_BUF_ERROR) {
    fail("{}, line {}: the compressed data end too early; the file is truncated", path_, number_ + 1);
  }
  if (got < 0) {
    std::string_view reason = text;  // begins with the path
    if (reason.starts_with(path_ + ": ")) reason.remove_prefix(path_.size() + 2);
    fail("{}, line {}: the compressed data are damaged: {}", path_, number_ + 1, reason);
  }
  at_end_ = got == 0;
}

}  // namespace metaprof
