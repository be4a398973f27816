#include "estimate/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "estimate/model_inputs.h"
#include "estimate/sizes.h"
#include "formats/file.h"
#include "frontend/program/program_file.h"
#include "frontend/pt2/pt2.h"
#include "meta/platform/files/device_file.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostTextBytes = uintmax_t{1} << 30;

// A name stands for NAME.pt2 here or in a folder that METAPROF_MODELS lists; anything else for itself.
std::string path_of_model(const std::string& model) {
  if (model.find_first_of("./") != std::string::npos || std::filesystem::exists(model)) return model;
  std::string folders = ".:";
  if (const char* listed = std::getenv("METAPROF_MODELS")) folders += listed;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    begin = end + 1;
    if (folder.empty()) continue;
    std::string path = fmt::format("{}{}.pt2", folder == "." ? "" : folder + "/", model);
    if (std::filesystem::exists(path)) return path;
  }
  fail("{}: no such file, and no {}.pt2 here or in the folders of METAPROF_MODELS ({})", model, model,
       folders.size() > 2 ? folders.substr(2) : "not set");
}

Program read_program(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code) || path.ends_with(".json"))
    fail(
        "{}: Hugging Face configurations cannot be read yet; export the model with torch.export.save and "
        "give the .pt2",
        path);
  return is_program_file(path) ? read_program_file(path) : read_pt2(path);
}

Platform load_device(const std::string& device) {
  if (device.ends_with(".json")) return read_device_file(device);
  if (find_hardware(device)) return platform_named(device);
  std::string names;
  for (const Hardware& known : known_hardware()) names += known.name + ", ";
  fail("--device: there is no device '{}'; there are {}and files FILE.json", device, names);
}

}  // namespace

Model read_model(const std::string& named) {
  Model model;
  if (named.ends_with(".trace")) {
    model.name = std::filesystem::path(named).stem().string();
    model.trace = parse_trace(read_text_file(named), named);
    return model;
  }
  model.program = read_program(path_of_model(named));
  model.name = model.program.name;
  return model;
}

Program with_inputs(const Model& model, const RunOptions& options) {
  Program program = model.program;
  set_inputs(program, options.batch, options.sequence, options.settings);
  return program;
}

std::vector<std::string> warnings_of(const Model& model) {
  std::vector<std::string> warnings;
  for (const std::string& warning : model.program.warnings)
    warnings.push_back("warning: " + std::string(Error(warning).what()));
  return warnings;
}

Platform device_of(const RunOptions& options) {
  Platform platform = load_device(options.device);
  if (!options.memory.empty()) platform.hardware.memory = parse_size(options.memory);
  return platform;
}

std::string read_text_file(const std::string& path) { return read_file(path, kMostTextBytes, "a text file"); }

}  // namespace metaprof
