#include "meta/trace/text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::Trace trace = metaprof::parse_trace(text, "step.trace");
    (void)metaprof::to_text(trace);
  });
}
