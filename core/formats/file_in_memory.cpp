#include "core/formats/file_in_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace metaprof {

FileInMemory::FileInMemory(const std::string& text) : descriptor_(memfd_create("metaprof", MFD_CLOEXEC)) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = descriptor_ < 0 ? -1 : write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0) fail("{} bytes cannot be kept in memory ({})", text.size(), std::strerror(errno));
    done += static_cast<size_t>(written);
  }
}

FileInMemory::~FileInMemory() { close(descriptor_); }

}  // namespace metaprof
