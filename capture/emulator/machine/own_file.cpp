#include "capture/emulator/machine/own_file.h"

#include <unistd.h>

namespace metaprof::emulator {

void OwnFile::take(int number) {
  close();
  struct stat status = {};
  if (number < 0 || fstat(number, &status) != 0) return;
  number_ = number;
  device_ = status.st_dev;
  file_ = status.st_ino;
}

void OwnFile::close() {
  if (is_open()) ::close(number_);
  number_ = -1;
}

bool OwnFile::is_open() const {
  struct stat status = {};
  return number_ >= 0 && fstat(number_, &status) == 0 && status.st_dev == device_ && status.st_ino == file_;
}

}  // namespace metaprof::emulator
