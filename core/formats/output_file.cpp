#include "core/formats/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/formats/text_cursor.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_be_written(const std::string& path, std::string_view reason) {
  fail("{}: cannot be written ({})", path, reason);
}
[[noreturn]] void cannot_be_written(const std::string& path) {
  cannot_be_written(path, std::strerror(errno));
}

// "/dev/fd/3" is 3. Such a name leads to what the descriptor has open, and to open that again would begin at its first
// byte.
std::optional<int> descriptor_named(const fs::path& path) {
  const std::string name = path.string();
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (name.starts_with(folder)) return whole_number<int>(std::string_view(name).substr(folder.size()));
  return std::nullopt;
}

// What links lead to, or would make; a descriptor's name is no link.
fs::path target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  fs::path target = path;
  std::error_code code;
  for (int i = 0; i < kMostLinks; ++i) {
    if (descriptor_named(target)) return target;
    const fs::path next = fs::read_symlink(target, code);
    if (code) return target;  // no link
    target = target.parent_path() / next;
  }
  cannot_be_written(path, std::strerror(ELOOP));
}

fs::path folder_of(const fs::path& target) {
  return target.parent_path().empty() ? fs::path(".") : target.parent_path();
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void write_to_descriptor(const std::string& path, int descriptor, std::string_view text) {
  std::cout.flush();  // which may have the same one
  if (!write_all(descriptor, text)) cannot_be_written(path);
}

// Opened without waiting: a FIFO that nobody reads is an error (ENXIO).
int open_device(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0 && errno == ENXIO) cannot_be_written(path, "a FIFO that nobody reads");
  if (descriptor < 0) cannot_be_written(path);
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

void write_to_device(const std::string& path, std::string_view text) {
  const int device = open_device(path);
  const bool written = write_all(device, text);
  const int error = errno;
  if (::close(device) != 0 && written) cannot_be_written(path);
  if (!written) cannot_be_written(path, std::strerror(error));
}

// A new file in a folder, which goes unless it takes another's name. Its own says nothing: one made of the other's
// could be longer than names may be.
class FileBeside {
 public:
  FileBeside(const std::string& path, const fs::path& folder) : path_(path) {
    for (int i = 0; descriptor_ < 0; ++i) {
      name_ = (folder / (".metaprof-" + std::to_string(getpid()) + "-" + std::to_string(i))).string();
      descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) cannot_be_written(path_);
    }
  }
  ~FileBeside() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!name_.empty()) unlink(name_.c_str());
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;

  void write(std::string_view text) {
    if (!write_all(descriptor_, text)) cannot_be_written(path_);
  }
  // Permissions and owner of the file that it comes in place of. Whoever may not give files away stays their owner.
  void take_rights(const struct stat& earlier) {
    if (fchown(descriptor_, earlier.st_uid, earlier.st_gid) != 0) errno = 0;
    if (fchmod(descriptor_, earlier.st_mode & 07777) != 0) cannot_be_written(path_);
  }
  void rename_to(const fs::path& target) {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0 || rename(name_.c_str(), target.c_str()) != 0) cannot_be_written(path_);
    name_.clear();
  }

 private:
  std::string path_, name_;
  int descriptor_ = -1;
};

struct Place {
  fs::path target;
  std::optional<struct stat> earlier;  // what has the name now
};

Place place_of(const std::string& path) {
  Place place{.target = target_of(path), .earlier = {}};
  struct stat earlier {};
  if (stat(place.target.c_str(), &earlier) == 0)
    place.earlier = earlier;
  else if (errno != ENOENT)
    cannot_be_written(path);
  if (place.earlier && S_ISDIR(earlier.st_mode)) fail("{}: cannot be written, it is a folder", path);
  return place;
}

// Rights to the file itself, which to rename another does not ask for.
void check_rights(const std::string& path, const Place& place) {
  if (place.earlier && access(place.target.c_str(), W_OK) != 0) cannot_be_written(path);
}

}  // namespace

void write_file(const std::string& path, std::string_view text) {
  const Place place = place_of(path);
  if (const auto descriptor = descriptor_named(place.target))
    return write_to_descriptor(path, *descriptor, text);
  if (place.earlier && !S_ISREG(place.earlier->st_mode)) return write_to_device(path, text);
  check_rights(path, place);
  FileBeside file(path, folder_of(place.target));
  file.write(text);
  if (place.earlier) file.take_rights(*place.earlier);
  file.rename_to(place.target);
}

void check_can_be_written(const std::string& path) {
  const Place place = place_of(path);
  if (descriptor_named(place.target)) return;
  check_rights(path, place);
  if (place.earlier && !S_ISREG(place.earlier->st_mode)) return;
  if (access(folder_of(place.target).c_str(), W_OK | X_OK) != 0) cannot_be_written(path);
}

}  // namespace metaprof
