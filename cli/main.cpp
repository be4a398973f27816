#include <cstdio>
#include <cstdlib>

#include "cli/metaprof.h"

// The process ends without the destructors of what lives as long as it does, as its memory goes with it; those take as
// long as a fiftieth of a report. Sanitizers look for leaks at the end of main.
int main(int count, char** words) {
  const int status = metaprof::run_metaprof(count, words);
#ifndef METAPROF_ADDRESS_SANITIZER
  std::fflush(nullptr);
  std::_Exit(status);
#endif
  return status;
}
