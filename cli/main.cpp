#include "cli/metaprof.h"
#include "core/heap.h"

int main(int count, char** words) {
  metaprof::prepare_heap();
  return metaprof::run_metaprof(count, words);
}
