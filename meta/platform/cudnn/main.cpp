// metaprof-cudnn-plans CUDNN DRIVER: answers questions about convolutions by asking cuDNN; no GPU is needed.
// CUDNN is the library's file or name, DRIVER the stand-in driver's file. The stand-ins for cuBLASLt lie beside it.
//
// stdin:  first a line with the device's description (device_description.h), then a question a line
//         (meta/platform/workspace_question.h), after "skip N ": of the N-th plan that follows with less workspace
// stdout: first "ready VERSION" or "error MESSAGE", then a line for each question: bytes, "none" (no plan), or "error
//         MESSAGE"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "meta/platform/cudnn/cudnn_convolution.h"

namespace {

void answer(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

// Errors: the library plans for devices of the machine only, as 9.1 does.
void check_describes_devices(const metaprof::cudnn::Library& library) {
  const int64_t version = library.version();
  metaprof::cudnn::Descriptors made(library);
  if (!made.can_make(metaprof::cudnn::Kind::device))
    metaprof::fail(
        "cuDNN {}.{}.{} cannot plan for a device that is only described; METAPROF_CUDNN may name a newer one",
        version / 10000, version / 100 % 100, version % 100);
}

// "skip 2 conv_fwd|…": of the second plan that is tried after memory ran out for the first.
std::optional<int64_t> workspace_of(const metaprof::cudnn::Library& library, std::string_view question,
                                    const std::string& device) {
  constexpr std::string_view kSkip = "skip ";
  int skipped = 0;
  if (question.starts_with(kSkip)) {
    question.remove_prefix(kSkip.size());
    const auto [end, error] = std::from_chars(question.data(), question.data() + question.size(), skipped);
    if (error != std::errc() || skipped < 0) metaprof::fail("expected a number after 'skip'");
    question.remove_prefix(static_cast<size_t>(end - question.data()));
    question.remove_prefix(std::min<size_t>(1, question.size()));  // the blank
  }
  return metaprof::cudnn::convolution_workspace(library, std::string(question), device, skipped);
}

}  // namespace

int main(int count, char** words) {
  using namespace metaprof;
  if (count != 3) return std::fputs("usage: metaprof-cudnn-plans CUDNN DRIVER\n", stderr), 2;
  try {
    // cuDNN looks for a driver and for cuBLASLt by name: it finds those that are loaded.
    const std::filesystem::path driver = words[2];
    for (const auto& file :
         {driver, driver.parent_path() / "libcublasLt.so.12", driver.parent_path() / "libcublasLt.so.13"})
      if (!dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) fail("{}", dlerror());
    const cudnn::Library library(words[1]);
    check_describes_devices(library);
    std::string device, question;
    std::getline(std::cin, device);
    answer(fmt::format("ready {}", library.version()));
    while (std::getline(std::cin, question)) {
      try {
        const auto bytes = workspace_of(library, question, device);
        answer(bytes ? fmt::format("{}", *bytes) : "none");
      } catch (const Error& error) {
        answer(fmt::format("error {}", error.what()));
      }
    }
  } catch (const Error& error) {
    answer(fmt::format("error {}", error.what()));
    return 2;
  }
  return 0;
}
