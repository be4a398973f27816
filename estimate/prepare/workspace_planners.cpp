#include "estimate/prepare/workspace_planners.h"

#include "meta/platform/cudnn/cudnn_planner.h"
#include "meta/platform/cudnn/device_description.h"
#include "meta/platform/files/workspace_table.h"

namespace metaprof {

struct WorkspacePlanners::Table {
  WorkspaceTable table;
};

// One conversation with a helper: one question at a time.
struct WorkspacePlanners::Library {
  std::mutex mutex;
  CudnnPlanner planner;
};

namespace {

// A session owns its planners; these hand its questions on to shared ones.
template <class Shared>
class ToTable final : public WorkspacePlanner {
 public:
  explicit ToTable(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform& platform) override {
    return shared_->table.convolution(plan, platform);
  }
  std::optional<int64_t> attention(const AttentionPlan& plan, const Platform& platform) override {
    return shared_->table.attention(plan, platform);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

template <class Shared>
class ToLibrary final : public WorkspacePlanner {
 public:
  explicit ToLibrary(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform& platform) override {
    const std::lock_guard lock(shared_->mutex);
    return shared_->planner.convolution(plan, platform);
  }
  std::optional<int64_t> attention(const AttentionPlan& plan, const Platform& platform) override {
    const std::lock_guard lock(shared_->mutex);
    return shared_->planner.attention(plan, platform);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

WorkspacePlanners::WorkspacePlanners() = default;
WorkspacePlanners::~WorkspacePlanners() = default;

std::shared_ptr<WorkspacePlanners::Table> WorkspacePlanners::table(const std::string& file,
                                                                   const Platform& platform) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Table>& table = tables_[file + "\n" + platform.hardware.name];
  if (!table) table = std::make_shared<Table>(Table{{file, platform.hardware.name}});
  return table;
}

std::shared_ptr<WorkspacePlanners::Library> WorkspacePlanners::library(const Platform& platform) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Library>& library = libraries_[cudnn_description(platform)];
  if (!library) library = std::make_shared<Library>();
  return library;
}

std::unique_ptr<PlannedWorkspaces> WorkspacePlanners::for_run(const std::string& workspaces,
                                                              const Platform& platform) {
  if (platform.hardware.is_cpu()) return nullptr;
  auto planned = std::make_unique<PlannedWorkspaces>();
  if (workspaces == "none") return planned;
  if (workspaces != "auto")
    planned->add(WorkspaceSource::table, std::make_unique<ToTable<Table>>(table(workspaces, platform)));
  planned->add(WorkspaceSource::planned, std::make_unique<ToLibrary<Library>>(library(platform)));
  planned->add(WorkspaceSource::rule, std::make_unique<WorkspaceRules>());
  return planned;
}

CudnnState WorkspacePlanners::cudnn(const Platform& platform) {
  const std::shared_ptr<Library> asked = library(platform);
  const std::lock_guard lock(asked->mutex);
  return {.version = asked->planner.version(), .failure = asked->planner.failure()};
}

}  // namespace metaprof
