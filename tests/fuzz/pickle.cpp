#include "core/formats/pickle_reader.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::Pickle pickle(text, "file.pickle", 1 << 16);
    if (const auto devices = pickle.root().find("device_traces")) (void)devices->size();
  });
}
