#pragma once
// Asks cuDNN itself, without a GPU: the library runs in a helper process, so that whatever it does (it is
// closed and large) cannot hurt this one. The helper is the program metaprof-cudnn-plans, which stands beside
// this program or in ../meta/platform/cudnn of its folder.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "meta/platform/planned_workspaces.h"

namespace metaprof {

class HelperProcess;

/// The folder with the helper and the driver (libcuda.so.1) that it gives cuDNN; empty: they are not there.
std::string cudnn_helper_folder();

class CudnnPlanner final : public WorkspacePlanner {
 public:
  /// Where cuDNN may be: the environment's METAPROF_CUDNN (a file, or a folder with libcudnn.so.9), what the
  /// dynamic linker finds as libcudnn.so.9, the packages of the active Python environment.
  static std::vector<std::string> candidates();

  /// The helper is started by the first question, with the first of these that loads.
  explicit CudnnPlanner(std::vector<std::string> libraries = candidates());
  ~CudnnPlanner() override;

  /// Nothing if cuDNN has no plan or there is no cuDNN. A helper that fails or takes longer than ten seconds
  /// is given up: nothing from then on. All questions must be about one device.
  std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform& platform) override;
  /// Nothing: attention is planned through cuDNN's frontend, which is not part of the library.
  std::optional<int64_t> attention(const AttentionPlan& plan, const Platform& platform) override;

  /// cudnnGetVersion() of the library that answers: 91900 is 9.19.0. 0: none was asked yet, or none is there.
  int64_t version() const { return version_; }
  /// Why none is there; empty if one is, or none was asked yet.
  const std::string& failure() const { return failure_; }

 private:
  void start(const Platform& platform);

  std::vector<std::string> libraries_;
  bool started_ = false;
  std::unique_ptr<HelperProcess> helper_;
  int64_t version_ = 0;
  std::string failure_;
  std::unordered_map<std::string, std::optional<int64_t>> known_;  // by question
};

}  // namespace metaprof
