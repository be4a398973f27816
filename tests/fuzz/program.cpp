#include "meta/platform/platform.h"
#include "program/text/text.h"
#include "step/step.h"
#include "tests/fuzz/fuzz.h"

// What is parsed is also run.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::Program program = metaprof::parse_program(text, "model.mp");
    (void)metaprof::to_text(program);
    (void)metaprof::run_steps(program, metaprof::platform_named("h200"), {});
  });
}
