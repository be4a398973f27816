#include "capture/emulator/machine/versions.h"

#include <dirent.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>

#include "capture/emulator/machine/environment.h"

namespace metaprof::emulator {
namespace {

Version parse(const std::string& text) {
  Version out;
  std::sscanf(text.c_str(), "%d.%d.%d", &out.major, &out.minor, &out.patch);
  return out;
}

// What PyTorch 2.10 (CUDA 12.8) and 2.15 (CUDA 13.2) come with.
Version newest(const std::string& library, int cuda) {
  static const std::map<std::string, Version> kNewest12 = {
      {"runtime", {12, 8, 90}},   {"cublas", {12, 8, 4}},   {"cudnn", {9, 10, 2}},  {"cufft", {11, 3, 3}},
      {"cusolver", {11, 7, 3}},   {"cusparse", {12, 5, 8}}, {"curand", {10, 3, 9}}, {"nvrtc", {12, 8, 93}},
      {"nvjitlink", {12, 8, 93}}, {"cupti", {12, 8, 90}},   {"nccl", {2, 27, 5}}};
  static const std::map<std::string, Version> kNewest13 = {
      {"runtime", {13, 2, 51}},   {"cublas", {13, 3, 0}},   {"cudnn", {9, 26, 0}},  {"cufft", {12, 2, 0}},
      {"cusolver", {12, 1, 0}},   {"cusparse", {12, 7, 9}}, {"curand", {10, 4, 2}}, {"nvrtc", {13, 2, 51}},
      {"nvjitlink", {13, 2, 51}}, {"cupti", {13, 2, 23}},   {"nccl", {2, 29, 3}}};
  return (cuda == 12 ? kNewest12 : kNewest13).at(library);
}

std::map<std::string, Version> given() {
  std::map<std::string, Version> out;
  const char* const value = std::getenv("METAPROF_EMULATOR_VERSIONS");
  std::istringstream words(value ? value : "");
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const Version version = equals == std::string::npos ? Version() : parse(word.substr(equals + 1));
    if (version.major == 0) refuse_to_run("METAPROF_EMULATOR_VERSIONS: '" + word + "' is not NAME=VERSION");
    out[word.substr(0, equals)] = version;
  }
  return out;
}

}  // namespace

std::string packages_folder() {
  std::string folder;
  const auto look = [](dl_phdr_info* info, size_t, void* out) {
    const std::string_view path = info->dlpi_name;
    const size_t at = path.rfind("/torch/lib/lib");
    if (at == std::string_view::npos) return 0;
    *static_cast<std::string*>(out) = path.substr(0, at);
    return 1;
  };
  dl_iterate_phdr(look, &folder);
  return folder;
}

Version packaged_version(const std::string& folder, const std::string& library, int cuda) {
  const bool of_cuda = library == "runtime" || library == "nvrtc" || library == "cupti";
  const std::string stem = "nvidia_" + std::string(of_cuda ? "cuda_" : "") + library;
  // cuDNN and NCCL have one soname for all releases of CUDA: whichever is installed.
  const bool of_any = library == "cudnn" || library == "nccl";
  const std::string names[] = {stem + "_cu" + std::to_string(cuda) + "-", stem + "-",
                               of_any ? stem + "_cu12-" : stem + "-"};
  Version out;
  DIR* const directory = opendir(folder.c_str());
  if (!directory) return out;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view file = entry->d_name;
    for (const std::string& name : names)
      if (file.starts_with(name) && file.ends_with(".dist-info"))
        out = parse(std::string(file.substr(name.size())));
  }
  closedir(directory);
  return out;
}

Version library_version(const std::string& library, int cuda) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, Version> known;
  const std::lock_guard lock(mutex);
  const auto key = std::pair(library, cuda);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  static const std::map<std::string, Version> kGiven = given();
  const auto wanted = kGiven.find(library);
  const std::string folder = packages_folder();
  Version version = wanted != kGiven.end() ? wanted->second : packaged_version(folder, library, cuda);
  if (version.major == 0) version = newest(library, cuda);
  // Before PyTorch is loaded its packages are not known: the next call looks again.
  if (wanted != kGiven.end() || !folder.empty()) known[key] = version;
  return version;
}

}  // namespace metaprof::emulator
