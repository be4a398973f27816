#include "program/config/config_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    (void)metaprof::ConfigFile(text, "config.json").program({.batch = 1, .sequence = 8});
  });
}
