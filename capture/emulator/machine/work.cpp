#include "capture/emulator/machine/work.h"

#include "capture/emulator/machine/streams.h"

int metaprof_emulator_work(void* stream) {
  using namespace metaprof::emulator;
  return submit(static_cast<Stream*>(stream), NodeKind::kernel);
}
