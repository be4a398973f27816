#include "core/formats/gzip_lines.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/formats/file.h"

namespace metaprof {
namespace {
constexpr size_t kPiece = 1 << 18;
constexpr size_t kLongestLine = 1 << 24;
}  // namespace

GzipLines::GzipLines(const std::filesystem::path& path, std::string_view what)
    : path_(path.string()), buffer_(kPiece) {
  size_of_file(path, what);
  file_ = gzopen(path_.c_str(), "rb");
  if (!file_) fail("{}: cannot be opened: {}", path_, std::strerror(errno));
}

GzipLines::~GzipLines() { gzclose(file_); }

void GzipLines::broken(std::string_view what) const { fail("{}:{}: {}", path_, number_ + 1, what); }

// Moves the unread rest to the front and reads behind it; false if there is nothing more.
bool GzipLines::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    if (end_ >= kLongestLine) broken("the line is longer than 16 MiB; this is no recording");
    buffer_.resize(buffer_.size() * 2);
  }
  const int count = gzread(file_, buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int code = Z_OK;
  const char* message = gzerror(file_, &code);
  if (code == Z_BUF_ERROR) broken("the compressed data end too early; the file is truncated");
  if (count < 0) {
    std::string_view reason = message;  // begins with the path
    if (reason.starts_with(path_ + ": ")) reason.remove_prefix(path_.size() + 2);
    broken(fmt::format("the compressed data are damaged: {}", reason));
  }
  end_ += static_cast<size_t>(count);
  return count > 0;
}

bool GzipLines::next(std::string_view& line) {
  size_t searched = 0;  // bytes of the rest that have no end of line
  for (;;) {
    const char* rest = buffer_.data() + begin_;
    const void* found = std::memchr(rest + searched, '\n', end_ - begin_ - searched);
    if (found) {
      line = {rest, static_cast<size_t>(static_cast<const char*>(found) - rest)};
      begin_ += line.size() + 1;
      ++number_;
      return true;
    }
    searched = end_ - begin_;
    if (!fill()) break;
  }
  if (begin_ == end_) return false;
  broken("ends in the middle of the line; the file is truncated");
}

}  // namespace metaprof
