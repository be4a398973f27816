#pragma once
// Who says what libraries plan, for all runs of a command: a table of measured workspaces is read once, and
// one helper program for each device asks cuDNN.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "meta/platform/planned_workspaces.h"
#include "meta/platform/platform.h"

namespace metaprof {

/// The cuDNN that answered for a device; `failure`: why none did. Both are empty where none was asked.
struct CudnnState {
  int64_t version = 0;  ///< 91900 is 9.19.0
  std::string failure;
};

/// Runs on several threads may use one object.
class WorkspacePlanners {
 public:
  WorkspacePlanners();
  ~WorkspacePlanners();

  /// For one run, as --workspaces says. "none": nobody is asked, and plans count as 0 bytes. A FILE: that
  /// table, then as "auto". "auto": cuDNN itself, then a rule. Null where the device has no such library.
  /// Errors: the table cannot be read, or has nothing for this device.
  std::unique_ptr<PlannedWorkspaces> for_run(const std::string& workspaces, const Platform& platform);

  CudnnState cudnn(const Platform& platform);

 private:
  struct Table;
  struct Library;
  std::shared_ptr<Table> table(const std::string& file, const Platform& platform);
  std::shared_ptr<Library> library(const Platform& platform);

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Table>> tables_;       // by file and device
  std::unordered_map<std::string, std::shared_ptr<Library>> libraries_;  // by device
};

}  // namespace metaprof
