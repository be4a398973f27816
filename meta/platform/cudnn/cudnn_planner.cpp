#include "meta/platform/cudnn/cudnn_planner.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "meta/platform/cudnn/device_description.h"
#include "meta/platform/cudnn/helper_process.h"
#include "meta/platform/workspace_question.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLibrary = "libcudnn.so.9", *kHelper = "metaprof-cudnn-plans";
// Against a helper that hangs. cuDNN is a gigabyte that may come from a slow disk.
constexpr double kSecondsToLoad = 300, kSecondsToPlan = 60;

void add_python_packages(const char* environment, std::vector<std::string>& out) {
  const char* root = std::getenv(environment);
  std::error_code code;
  if (!root || !*root) return;
  for (const auto& python : fs::directory_iterator(fs::path(root) / "lib", code)) {
    const fs::path file = python.path() / "site-packages/nvidia/cudnn/lib" / kLibrary;
    if (python.path().filename().string().starts_with("python") && fs::exists(file, code))
      out.push_back(file.string());
  }
}

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::string cudnn_helper_folder() {
  std::error_code code;
  const fs::path here = fs::read_symlink("/proc/self/exe", code).parent_path();
  // Where this program is, or beside that (in a build, installed).
  for (const fs::path& folder : {here, here / "../meta/platform/cudnn", here / "../../meta/platform/cudnn",
                                 here / "../lib/metaprof/cudnn"})
    if (fs::exists(folder / kHelper, code)) return folder;
  return {};
}

std::vector<std::string> CudnnPlanner::candidates() {
  std::vector<std::string> out;
  if (const char* given = std::getenv("METAPROF_CUDNN"); given && *given) {
    std::error_code code;
    out.push_back(fs::is_directory(given, code) ? (fs::path(given) / kLibrary).string() : given);
    return out;  // who names one wants that one
  }
  add_python_packages("VIRTUAL_ENV", out);
  add_python_packages("CONDA_PREFIX", out);
  out.emplace_back(kLibrary);
  return out;
}

CudnnPlanner::CudnnPlanner(std::vector<std::string> libraries) : libraries_(std::move(libraries)) {}

CudnnPlanner::~CudnnPlanner() = default;

void CudnnPlanner::start(const Platform& platform) {
  started_ = true;
  const fs::path folder = cudnn_helper_folder();
  if (folder.empty()) {
    failure_ = "the helper metaprof-cudnn-plans is not beside this program";
    return;
  }
  for (const std::string& library : libraries_) {
    auto helper = std::make_unique<HelperProcess>(
        std::vector<std::string>{(folder / kHelper).string(), library, (folder / "libcuda.so.1").string()});
    helper->send(cudnn_description(platform));
    const std::optional<std::string> greeting = helper->receive(kSecondsToLoad);
    if (greeting && greeting->starts_with("ready ")) {
      version_ = integer(std::string_view(*greeting).substr(6)).value_or(0);
      failure_.clear();
      helper_ = std::move(helper);
      return;
    }
    const bool said = greeting && greeting->starts_with("error ");
    failure_ = said ? greeting->substr(6) : fmt::format("{}: the helper does not answer", library);
  }
}

std::optional<int64_t> CudnnPlanner::convolution(const ConvolutionPlan& plan, const Platform& platform) {
  if (!started_) start(platform);
  if (!helper_) return {};
  const std::string question = to_text(plan);
  const auto known = known_.find(question);
  if (known != known_.end()) return known->second;
  std::optional<int64_t> bytes;
  if (helper_->send(question))
    if (const std::optional<std::string> answer = helper_->receive(kSecondsToPlan)) bytes = integer(*answer);
  if (bytes && *bytes < 0) bytes.reset();
  known_.emplace(question, bytes);
  return bytes;
}

std::optional<int64_t> CudnnPlanner::attention(const AttentionPlan&, const Platform&) { return {}; }

}  // namespace metaprof
