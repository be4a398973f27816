#include "capture/emulator/machine/streams/work.h"

#include "capture/emulator/machine/streams/streams.h"

int metaprof_emulator_work(void* stream) {
  using namespace metaprof::emulator;
  return submit(static_cast<Stream*>(stream), NodeKind::kernel);
}

int metaprof_emulator_work_of(void* stream, double moved, double flops, int element_bytes) {
  using namespace metaprof::emulator;
  const Cost cost{.moved = moved, .flops = flops, .element_bytes = element_bytes};
  return submit(static_cast<Stream*>(stream), NodeKind::kernel, cost);
}
