#include "capture/selftest/selftest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "capture/launch/installation.h"
#include "capture/launch/temporary_folder.h"
#include "capture/selftest/side_by_side.h"
#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/output_file.h"
#include "estimate/compare/check.h"
#include "meta/platform/files/device_file.h"
#include "validation/allocator/rerun_allocations.h"
#include "validation/steps/check.h"
#include "validation/steps/measurement.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAllSteps = "100";  // of each program every request is kept
constexpr uintmax_t kMostBytesOfProgram = 1 << 20;
constexpr int kMostByDefault = 8;

fs::path programs_folder() { return recorder_folder() / "selftest" / "programs"; }

// The first line of its description.
std::string what_it_is(const std::string& name) {
  const std::string text =
      read_file(programs_folder() / (name + ".py"), kMostBytesOfProgram, "a program of the self-test");
  const size_t begin = text.find("\"\"\"");
  if (begin == text.npos) return {};
  return text.substr(begin + 3, text.find_first_of("\n\"", begin + 3) - begin - 3);
}

std::vector<std::string> chosen(const std::vector<std::string>& asked) {
  const std::vector<std::string> all = selftest_programs();
  if (all.empty()) fail("{}: has no programs", programs_folder().string());
  for (const std::string& name : asked)
    if (std::ranges::find(all, name) == all.end())
      fail("--program {}: there is no such program; there are {}", name, fmt::join(all, ", "));
  return asked.empty() ? all : asked;
}

std::string this_program() {
  std::error_code code;
  const fs::path path = fs::read_symlink("/proc/self/exe", code);
  if (code)
    fail("selftest: /proc/self/exe cannot be read, and so this program cannot run itself ({})",
         code.message());
  return path.string();
}

// Where the files of one program on one side are.
struct Files {
  fs::path folder;
  std::string name;

  std::string json() const { return (folder / (name + ".json")).string(); }
  std::string log() const { return (folder / (name + ".log.gz")).string(); }
  std::string saved() const { return (folder / (name + ".mp")).string(); }
  fs::path output() const { return folder / (name + ".txt"); }
  std::vector<fs::path> all() const { return {json(), log(), saved(), output()}; }
};

// Whether the model of the allocator, given the log's requests and its segments' addresses, does what the log says.
bool is_repeated(const std::string& log) try {
  return rerun_allocations({log}).all_equal();
} catch (const Error&) {
  return false;
}

class Selftest {
 public:
  Selftest(const SelftestOptions& options, fs::path folder) : options_(options), folder_(std::move(folder)) {
    names_ = chosen(options.programs);
    report_.gpu = options.gpu;
    report_.machine = machine_of(options.python, folder_);
    if (options.gpu && !report_.machine.device)
      fail(
          "selftest --gpu: PyTorch {} of {} sees no CUDA device on this machine (torch.cuda.is_available() "
          "is "
          "false)",
          report_.machine.torch, options.python);
    take_device();
    // The engine asks the cuDNN that the programs use.
    if (!report_.machine.cudnn_library.empty())
      setenv("METAPROF_CUDNN", report_.machine.cudnn_library.c_str(), 0);
    for (const bool real : {true, false}) {
      fs::create_directories(files("", real).folder);
      for (const std::string& name : names_)  // of an earlier test
        for (const fs::path& file : files(name, real).all()) fs::remove(file);
    }
  }

  SelftestReport run(const std::function<void(size_t, size_t)>& progress) {
    std::vector<Job> jobs;
    for (const std::string& name : names_) {
      if (options_.gpu) jobs.push_back(job(name, true));
      jobs.push_back(job(name, false));
    }
    const std::vector<int> ends = run_side_by_side(jobs, at_once(), [&](size_t ended) {
      if (progress) progress(ended, jobs.size());
    });
    for (size_t i = 0, job = 0; i < names_.size(); ++i) {
      const int real = options_.gpu ? ends[job++] : 0, emulated = ends[job++];
      report_.programs.push_back(result_of(names_[i], real, emulated));
    }
    return std::move(report_);
  }

 private:
  size_t at_once() const {
    if (options_.jobs > 0) return static_cast<size_t>(options_.jobs);
    return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, kMostByDefault);
  }

  // The emulated card is the real one's double, or one that is known.
  void take_device() {
    if (!options_.gpu) {
      const Hardware* known = find_hardware(options_.device);
      const Hardware hardware = known ? *known : read_device_file(options_.device).hardware;
      device_ = options_.device;
      report_.device_title = hardware.title;
      report_.device_memory = hardware.memory.count;
      return;
    }
    const Hardware& hardware = *report_.machine.device;
    report_.device_title = hardware.title;
    report_.device_memory = hardware.memory.count;
    device_ = (folder_ / "device.json").string();
    write_file(device_, device_file_of(hardware));
  }

  Files files(const std::string& name, bool real) const {
    return {folder_ / (real ? "real" : "emulated"), name};
  }

  // Each figure can be had again with this command.
  Job job(const std::string& name, bool real) const {
    const Files its = files(name, real);
    std::vector<std::string> words{this_program(), "run"};
    if (real)
      words.emplace_back("--real");
    else
      words.insert(words.end(), {"--device", device_, "--save", its.saved(), "--tolerance", "100%"});
    words.insert(words.end(), {"--detail", kAllSteps, "--timeout", fmt::format("{:g}", options_.timeout),
                               "--json", its.json(), "--events", "--", options_.python,
                               (programs_folder() / (name + ".py")).string()});
    return {std::move(words), its.output()};
  }

  // What the run said at its end, in one line.
  static std::string failure_of(const char* side, const Files& its, int status) {
    std::string last, line;
    std::ifstream file(its.output());
    while (std::getline(file, line))
      if (line.starts_with("metaprof: ")) last = line.substr(10);
    return fmt::format("the {} run ended with exit status {}{}{}", side, status, last.empty() ? "" : ": ",
                       last);
  }

  // The engine's repetition beside the run; a program that the engine cannot repeat has the run's figures alone.
  CheckResult checked(SelftestProgram& program, const Files& saved, const std::string& json) const {
    CheckOptions check_options;
    check_options.model = saved.saved();
    check_options.measurements = {json};
    if (options_.gpu) check_options.run.device = device_;
    try {
      if (!fs::exists(saved.saved())) fail("it was not saved");
      return check(check_options).measurements.at(0);
    } catch (const Error& error) {
      const std::string problem = fmt::format("the engine does not repeat it: {}", error.what());
      if (std::ranges::find(program.problems, problem) == program.problems.end())
        program.problems.push_back(problem);
      return compare(read_measurement(json), {});
    }
  }

  SelftestProgram result_of(const std::string& name, int real_status, int emulated_status) {
    SelftestProgram program{.name = name,
                            .what = what_it_is(name),
                            .problems = {},
                            .emulated = {},
                            .real = {},
                            .real_difference = {}};
    const Files emulated = files(name, false), real = files(name, true);
    const auto has_run = [&](const char* side, const Files& its, int status) {
      if (status == 0 && fs::exists(its.json())) return true;
      program.problems.push_back(failure_of(side, its, status));
      return false;
    };
    const bool ran = has_run("emulated", emulated, emulated_status);
    if (ran) program.emulated = checked(program, emulated, emulated.json());
    if (!options_.gpu || !has_run("real", real, real_status)) return program;
    program.real = checked(program, emulated, real.json());
    if (ran) try {
        program.real_difference = first_difference(real.log(), emulated.log());
        program.driver_decides = is_repeated(real.log());
      } catch (const Error& error) {
        program.problems.emplace_back(error.what());
      }
    return program;
  }

  const SelftestOptions& options_;
  fs::path folder_;
  std::vector<std::string> names_;
  std::string device_;
  SelftestReport report_;
};

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text = {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace

bool SelftestProgram::equal() const {
  const auto is_equal = [](const CheckResult& result) {
    return std::ranges::all_of(result.rows, [](const CheckRow& row) { return row.equal(); });
  };
  return problems.empty() && is_equal(emulated) && (!real || is_equal(*real)) && !real_difference;
}

SelftestReport selftest(const SelftestOptions& options, const std::function<void(size_t, size_t)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const TemporaryFolder temporary("metaprof-selftest");
  const fs::path folder = options.keep.empty() ? temporary.path() : fs::absolute(options.keep);
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) fail("--keep {}: cannot be made ({})", options.keep, code.message());
  const std::string date = now();
  SelftestReport report = Selftest(options, folder).run(progress);
  report.date = date;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

std::vector<std::string> selftest_programs() {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(programs_folder(), code))
    if (entry.path().extension() == ".py") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace metaprof
