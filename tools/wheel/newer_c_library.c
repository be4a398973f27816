// What g++ 12's libstdc++.a expects of Debian 12's C library and the one of tools/wheel/sysroot.py does not have. Goes into that
// one's libc_nonshared.a, so each program and library gets its own.

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32. False: reference counts are always changed atomically.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.36; std::random_device calls it.
HIDDEN uint32_t arc4random(void) {
  uint32_t number;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}
