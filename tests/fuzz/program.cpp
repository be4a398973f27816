#include "meta/program/text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::Program program = metaprof::parse_program(text, "model.mp");
    (void)metaprof::to_text(program);
  });
}
