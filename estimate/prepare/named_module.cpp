#include "estimate/prepare/named_module.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "capture/launch/installation.h"
#include "capture/launch/process.h"
#include "capture/launch/temporary_folder.h"
#include "core/error.h"
#include "core/formats/file.h"
#include "estimate/prepare/model_inputs.h"
#include "program/builtin/builtin.h"
#include "program/text/program_file.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kLibraries = {"timm", "torchvision", "transformers"};
// What decides the steps that a module makes; the others are the engine's (python/metaprof/_steps.py).
constexpr std::array kInputs = {"batch", "sequence", "set", "steps"};
constexpr std::array<std::string_view, 7> kOfCapture = {
    "precision", "mode", "hooks", "channels_last", "zero_grad_to_none", "clip_norm", "clip_value"};

Json options_of(const std::string& named, const RunOptions& options) {
  Json json = {{"device", options.device}, {"steps", options.step.steps}};
  if (options.batch) json["batch"] = *options.batch;
  if (options.sequence) json["sequence"] = *options.sequence;
  for (const auto& [name, sizes] : sizes_of_settings(options.settings)) json["set"][name] = sizes;
  for (const std::string_view name : kOfCapture) {
    const OptionValue value = run_option(name).value(options);
    if (const auto* flag = std::get_if<bool>(&value)) json[std::string(name)] = *flag;
    if (const auto* number = std::get_if<double>(&value)) json[std::string(name)] = *number;
    if (const auto* text = std::get_if<std::string>(&value)) json[std::string(name)] = *text;
  }
  const std::string_view model = std::string_view(named).substr(named.find(':') + 1);
  if (named.starts_with("transformers:"))
    if (const std::string_view text = builtin_config(builtin_named(model)); !text.empty())
      json["config"] = text;
  return json;
}

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::error_code unknown;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / program, unknown)) return true;
  return false;
}

std::string python() {
  if (const char* given = std::getenv("METAPROF_PYTHON"); given && *given) return given;
  return is_in_path("python") ? "python" : "python3";  // of a virtual environment that is active
}

}  // namespace

bool names_module(const std::string& named) {
  const size_t colon = named.find(':');
  if (colon == std::string::npos || colon + 1 == named.size()) return false;
  for (const std::string_view library : kLibraries)
    if (named.compare(0, colon, library) == 0) return true;
  return named.find(".py:") != std::string::npos;
}

Program captured_module(const std::string& named, const RunOptions& options) {
  const TemporaryFolder folder("metaprof-module");
  const fs::path file = folder.path() / "module.mp";
  std::error_code unknown;
  const ProcessEnd end = run_process(
      {.words = {python(), "-m", "metaprof._door", named, file.string(), options_of(named, options).dump()},
       .environment = {{"PYTHONPATH", python_path()},
                       {"METAPROF_PROGRAM", fs::read_symlink("/proc/self/exe", unknown).string()},
                       {"TRANSFORMERS_VERBOSITY", "error"}},
       .output_to_error = true});
  const std::string refused = file.string() + ".error";
  if (fs::exists(refused, unknown)) fail("{}", read_file(refused, 1 << 20, "a message"));
  if (end.status != 0 || !fs::exists(file, unknown))
    fail("{}: {} ended with status {} before its steps were captured", named, python(), end.status);
  Program program = read_program_file(file.string());
  program.name = named;
  program.origin = named;
  program.captured->own_optimizer = fs::exists(file.string() + ".step", unknown) ||
                                    options.step.mode == Mode::no_grad ||
                                    options.step.mode == Mode::inference;
  std::map<std::string, std::string>& module = program.captured->module;
  for (const auto& names : {std::vector<std::string_view>(kInputs.begin(), kInputs.end()),
                            std::vector<std::string_view>(kOfCapture.begin(), kOfCapture.end())})
    for (const std::string_view name : names)
      module[std::string(name)] = to_text(run_option(name).value(options));
  return program;
}

}  // namespace metaprof
