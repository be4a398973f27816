#include "evidence/gzip_lines.h"

#include <zlib.h>

#include <cstring>

#include "core/error.h"

namespace metaprof {
namespace {
constexpr size_t kPiece = 1 << 18;
constexpr size_t kLongestLine = 1 << 24;
}  // namespace

GzipLines::GzipLines(std::string path)
    : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")), buffer_(kPiece) {
  if (!file_) fail("{}: cannot be opened", path_);
}

GzipLines::~GzipLines() {
  if (file_) gzclose(file_);
}

// Moves the unread rest to the front and reads behind it; false if there is nothing more.
bool GzipLines::fill() {
  if (at_end_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    if (end_ >= kLongestLine) fail("{}:{}: the line is longer than 16 MiB", path_, number_ + 1);
    buffer_.resize(buffer_.size() * 2);
  }
  const int count = gzread(file_, buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int code = Z_OK;
  const char* message = gzerror(file_, &code);
  if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END))
    fail("{}:{}: cannot be unpacked: {}", path_, number_ + 1, message);
  end_ += static_cast<size_t>(count);
  at_end_ = count == 0;
  return count > 0;
}

bool GzipLines::next(std::string_view& line) {
  size_t searched = begin_;
  for (;;) {
    const void* found = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (found) {
      const size_t stop = static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
      line = {buffer_.data() + begin_, stop - begin_};
      begin_ = stop + 1;
      ++number_;
      return true;
    }
    const size_t rest = end_ - begin_;
    if (!fill()) break;
    searched = rest;
  }
  if (begin_ == end_) return false;
  line = {buffer_.data() + begin_, end_ - begin_};
  begin_ = end_;
  ++number_;
  return true;
}

}  // namespace metaprof
