#include "capture/launch/installation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <regex>

#include "core/error.h"
#include "meta/platform/cudnn/cudnn_planner.h"
#include "meta/platform/cudnn/device_description.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

// A folder beside this program: in a build BUILD/NAME, installed lib/metaprof/NAME.
fs::path beside(const char* variable, const fs::path& in_build, const fs::path& installed,
                const fs::path& has) {
  if (const char* given = std::getenv(variable); given && *given) {
    if (!fs::exists(fs::path(given) / has))
      fail("{}={}: there is no {} in it", variable, given, has.string());
    return fs::absolute(given);
  }
  std::error_code code;
  const fs::path here = fs::read_symlink("/proc/self/exe", code).parent_path();
  for (const fs::path& folder : {here / ".." / in_build, here / ".." / "lib" / "metaprof" / installed})
    if (fs::exists(folder / has)) return fs::canonical(folder);
  return {};
}

std::string before(const std::string& word, const char* variable, char separator) {
  const char* present = std::getenv(variable);
  return present && *present ? fmt::format("{}{}{}", word, separator, present) : word;
}

// Who asks cuDNN for the workspaces of its plans. The program's own PyTorch says which cuDNN it is, unless METAPROF_CUDNN
// does.
std::string cudnn_words(const Hardware& device) {
  const fs::path folder = cudnn_helper_folder();
  if (folder.empty()) return {};
  Platform platform;
  platform.hardware = device;
  std::string words =
      fmt::format("helper={}\ndriver={}\ndevice={}\n", (folder / "metaprof-cudnn-plans").string(),
                  (folder / "libcuda.so.1").string(), cudnn_description(platform));
  if (const char* given = std::getenv("METAPROF_CUDNN"); given && *given) {
    if (fs::path(given).has_parent_path() && !fs::exists(given))
      fail("METAPROF_CUDNN={}: there is no such file or folder", given);
    words += fmt::format("library={}\n", CudnnPlanner::candidates().front());
  }
  return words;
}

void emulate(const LaunchOptions& options, std::map<std::string, std::string>& environment,
             const fs::path& record) {
  constexpr const char* library = "libmetaprof-emulator.so";
  const fs::path folder = beside("METAPROF_EMULATOR", fs::path("emulator") / "lib", "emulator", library);
  if (folder.empty())
    fail(
        "the emulated device's libraries are not beside this program (METAPROF_EMULATOR names their folder)");
  environment["LD_PRELOAD"] = before((folder / library).string(), "LD_PRELOAD", ':');
  environment["LD_LIBRARY_PATH"] = before(folder.string(), "LD_LIBRARY_PATH", ':');
  environment["TRITON_LIBCUDA_PATH"] = folder.string();
  environment["METAPROF_EMULATOR_DEVICE"] = description_of(options.device);
  environment["METAPROF_EMULATOR_GPUS"] = fmt::format("{}", options.gpus);
  environment["METAPROF_EMULATOR_CONTEXT"] = fmt::format("{}", options.context.count);
  environment["METAPROF_EMULATOR_CLOCK"] = options.clock;
  environment["METAPROF_EMULATOR_LOG"] = record.string();
  environment["METAPROF_EMULATOR_CUDNN"] = options.workspaces == "auto" ? cudnn_words(options.device) : "";
  if (!std::getenv("KINETO_LOG_LEVEL"))
    environment["KINETO_LOG_LEVEL"] = "99";  // there is no profiler of kernels to find
}

// A line each. Errors: one that is none.
std::string assumptions_of(const LaunchOptions& options) {
  static const std::regex kAssumption(R"(even|all|.+:[0-9]+=[0-9]+(/[1-9][0-9]*)?)");
  std::string lines;
  for (const std::string& text : options.assumptions) {
    if (!std::regex_match(text, kAssumption))
      fail("--assume {}: expected even, all, both, FILE:LINE=NUMBER or FILE:LINE=NUMBER/NUMBER", text);
    lines += text + "\n";
  }
  return lines;
}

// One process runs the first rank; the recorder starts the others (capture/recorder/metaprof_recorder/ranks/peers.py).
void run_ranks(const LaunchOptions& options, std::map<std::string, std::string>& environment,
               const fs::path& record) {
  const int rank = options.ranks.empty() ? 0 : options.ranks.front();
  environment["METAPROF_RECORD_WORLD"] = environment["WORLD_SIZE"] = fmt::format("{}", options.world_size);
  environment["METAPROF_RECORD_RANKS"] = (record / "ranks").string();
  environment["METAPROF_RECORD_WITH"] =
      options.different_ranks ? "different"
      : options.ranks.size() > 1
          ? fmt::format("{}", fmt::join(options.ranks.begin() + 1, options.ranks.end(), ","))
          : "";
  environment["RANK"] = fmt::format("{}", rank);
  environment["LOCAL_RANK"] = fmt::format("{}", rank % options.gpus);
  environment["LOCAL_WORLD_SIZE"] = fmt::format("{}", options.gpus);
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = "29500";
}

}  // namespace

fs::path recorder_folder() {
  fs::path folder = beside("METAPROF_RECORDER", "recorder", "recorder", "sitecustomize.py");
  if (folder.empty()) fail("the recorder is not beside this program (METAPROF_RECORDER names its folder)");
  return folder;
}

std::string python_path() {
  const fs::path door = fs::path("metaprof") / "_door.py";
  fs::path folder = beside("METAPROF_PACKAGE", "python", "python", door);
  std::error_code code;
  // Of an installed package the program is in its bin/.
  const fs::path package = fs::read_symlink("/proc/self/exe", code).parent_path() / ".." / "..";
  if (folder.empty() && fs::exists(package / door)) folder = fs::canonical(package);
  if (folder.empty())
    fail("the Python package is not beside this program (METAPROF_PACKAGE names its folder)");
  return before(folder.string(), "PYTHONPATH", ':');
}

std::map<std::string, std::string> environment_of(const LaunchOptions& options, const fs::path& record) {
  std::map<std::string, std::string> environment;
  environment["PYTHONPATH"] = before(recorder_folder().string(), "PYTHONPATH", ':');
  environment["METAPROF_RECORD"] = record.string();
  environment["METAPROF_RECORD_STEPS"] = options.steps > 0 ? fmt::format("{}", options.steps) : "";
  environment["METAPROF_RECORD_DETAIL"] = fmt::format("{}", options.detail_steps);
  environment["METAPROF_RECORD_ASSUME"] = assumptions_of(options);
  environment["METAPROF_RECORD_PROGRAM"] = options.save.empty() && !options.costs ? "" : "1";
  environment["METAPROF_RECORD_FIX"] = options.fix;
  environment["METAPROF_RECORD_EVENTS"] = options.events ? "1" : "";
  if (!options.real) emulate(options, environment, record);
  if (!options.alloc_conf.empty())  // up to 2.9 the name had CUDA in it
    environment["PYTORCH_ALLOC_CONF"] = environment["PYTORCH_CUDA_ALLOC_CONF"] = options.alloc_conf;
  if (options.world_size > 0) run_ranks(options, environment, record);
  for (const std::string& word : options.environment) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == word.npos) fail("--env: '{}' is no NAME=VALUE", word);
    environment[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return environment;
}

std::string description_of(const Hardware& device) {
  return fmt::format(
      "name={};title={};sm={};multiprocessors={};threads_per_multiprocessor={};shared_memory_per_block={};"
      "memory={}",
      device.name, device.title, device.sm, device.multiprocessors, device.threads_per_multiprocessor,
      device.shared_memory_per_block, device.memory.count);
}

}  // namespace metaprof
