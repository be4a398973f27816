#include <malloc.h>

#include "cli/metaprof.h"

int main(int count, char** words) {
#ifdef __GLIBC__
  // Traces are large and short-lived. Without this each goes back to the system, and the next one takes its pages from
  // there again, cleared: a tenth of a run.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  return metaprof::run_metaprof(count, words);
}
