#include "core/formats/file_in_memory.h"
#include "meta/platform/files/workspace_table.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::FileInMemory file(text);
    (void)metaprof::WorkspaceTable(file.path(), "h200");
  });
}
