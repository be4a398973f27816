#pragma once
// What the recorder writes of a process, and the report of a run whose folder has it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "capture/launch/recording.h"
#include "reports/run/run_report.h"

namespace metaprof {

// A row of one phase whose statistics are all the same two numbers.
inline std::string phase(const std::string& name, int step, int64_t current, int64_t peak, int device = 0,
                         int failures = 0) {
  std::string numbers;
  for (const char* key : {"allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes",
                          "inactive_split_bytes", "allocation", "segment"})
    numbers += std::string(numbers.empty() ? "" : ", ") + "\"" + key + R"(": {"current": )" +
               std::to_string(current) + R"(, "peak": )" + std::to_string(peak) + "}";
  return R"({"row": "phase", "seconds": 1.5, "phase": ")" + name + R"(", "step": )" + std::to_string(step) +
         R"(, "devices": {")" + std::to_string(device) + R"(": {)" + numbers + R"(, "num_ooms": )" +
         std::to_string(failures) + "}}}\n";
}

// What the program did within a phase, as the recorder writes it.
inline std::string named(const std::string& name, const std::string& within, int step, int64_t current,
                         int64_t peak_bytes) {
  std::string row = phase(name, step, current, peak_bytes);
  return row.insert(row.find(", \"devices\""), R"(, "within": ")" + within + '"');
}

inline const std::string kProcess =
    R"({"row": "process", "pid": 7, "parent": 1, "program": ["python", "train.py"], "environment": {"RANK": "3"}})"
    "\n";
inline const std::string kTorch = R"({"row": "torch", "version": "2.11.0+cu130", "cuda": "13.0"})"
                                  "\n";
inline const std::string kDevice = R"({"row": "device", "device": 0, "name": "NVIDIA H200", "memory": 1000})"
                                   "\n";

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  RunReport report(int status = 0, Bytes context = {}) const {
    LaunchOptions options;
    options.context = context;
    options.program = {"python", "train.py"};
    options.device.name = "h200";
    options.device.title = "NVIDIA H200";
    options.device.memory = {1000};
    ProcessEnd end;
    end.status = status;
    return report_of(options, end, read_processes(folder_));
  }
  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                        testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace metaprof
