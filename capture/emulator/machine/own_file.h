#pragma once
// A file that the stand-ins have open in somebody else's program. That may close all files that it does not know (daemons do), and
// its next file gets the number: what were written there, or read, would be of the program.

#include <sys/stat.h>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

class METAPROF_EXPORT OwnFile {
 public:
  OwnFile() = default;
  ~OwnFile() { close(); }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

  /// Takes what open() or socketpair() gave; -1: none. What it had is closed.
  void take(int number);
  void close();
  /// Whether the number is still that of the file that was taken.
  bool is_open() const;
  /// To be used at once; -1: it is not open.
  int number() const { return is_open() ? number_ : -1; }

 private:
  int number_ = -1;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace metaprof::emulator
