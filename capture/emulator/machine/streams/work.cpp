#include "capture/emulator/machine/streams/work.h"

#include "capture/emulator/machine/streams/streams.h"

int metaprof_emulator_work(void* stream) {
  using namespace metaprof::emulator;
  return submit(static_cast<Stream*>(stream), NodeKind::kernel);
}
