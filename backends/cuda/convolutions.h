#pragma once
// Convolutions by cuDNN, as the framework calls it (aten/src/ATen/native/cudnn/Conv_v8.cpp): the first plan that the
// heuristics give.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/cuda/device.h"
#include "core/shape.h"
#include "meta/platform/cudnn/cudnn_backend.h"
#include "meta/platform/workspace_question.h"

namespace metaprof::cuda {

/// Input, weight and output, whatever is computed.
struct ConvolutionOperands {
  CUdeviceptr x = 0, w = 0, y = 0;
};

class Convolutions {
 public:
  /// Makes a handle, which takes memory of the device. Errors: cuDNN is not there.
  Convolutions();
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;

  /// `workspace`: of so many bytes; plans that need more are passed over. False, and nothing is done: there is no plan, or cuDNN does not execute it.
  bool run(const ConvolutionQuestion& question, const ConvolutionOperands& operands, CUdeviceptr workspace,
           int64_t workspace_bytes, CUstream stream);
  /// 91900 is 9.19.0
  int version() const { return static_cast<int>(library_.version()); }

 private:
  struct Plan {
    explicit Plan(const cudnn::Library& library) : made(library) {}
    cudnn::Descriptors made;
    cudnn::Descriptor plan = nullptr;  ///< null: there is none
  };
  Plan& plan_for(const ConvolutionQuestion& question, int64_t workspace_bytes);
  cudnn::Descriptor find_plan(cudnn::Descriptors& made, const ConvolutionQuestion& question,
                              int64_t workspace_bytes);

  DynamicLibrary functions_;
  cudnn::Library library_;
  void* handle_ = nullptr;
  std::map<std::string, std::unique_ptr<Plan>> plans_;  // by question
};

/// The geometry that turns these sizes into each other, with dense tensors and no dilation, for sizes of
/// [batch, channels, …]: a trace has no strides. Nothing: no such convolution does.
std::optional<ConvolutionQuestion> convolution_between(SizesView x, SizesView w, SizesView y, DType dtype);

}  // namespace metaprof::cuda
