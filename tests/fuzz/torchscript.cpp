#include "program/torchscript/torchscript.h"

#include "core/formats/file_in_memory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/stored_archive.h"

namespace {

using namespace std::string_literals;

// An object of class M of the code, with a number and a flag.
const std::string kModule = "\x80\2c__torch__\nM\n)\x81}(X\1\0\0\0nK\3X\x08\0\0\0training\x88ub."s;

}  // namespace

// The input is the code of an archive.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::FileInMemory file(
        metaprof::stored_archive({{"m/data.pkl", kModule}, {"m/code/__torch__.py", text}}));
    const metaprof::ScriptInput x{.dtype = metaprof::DType::f32, .sizes = {2, 4}, .number = {}};
    (void)metaprof::ScriptFile(file.path()).program({{"x", x}}, {});
  });
}
