// cuDNN apart from the graph API and recurrent networks: handles, versions, descriptors, and how much workspace the older
// functions take: none.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "capture/emulator/cudnn/dropout.h"
#include "capture/emulator/cudnn/tensors.h"
#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/versions.h"
#include "capture/emulator/size_queries.h"

using metaprof::emulator::give_handle;
using metaprof::emulator::library_version;
using metaprof::emulator::cudnn::Dropout;
using metaprof::emulator::cudnn::Tensor;

namespace {

constexpr int kNotSupported = 3000;

struct Handle {
  void* stream = nullptr;
};

}  // namespace

METAPROF_CUDA size_t cudnnGetVersion() {
  const auto v = library_version("cudnn", 13);
  const int version = v.major * 10000 + v.minor * 100 + v.patch;
  return size_t(version);
}
METAPROF_CUDA size_t cudnnGetCudartVersion() { return size_t(library_version("runtime", 13).cuda()); }
METAPROF_CUDA int cudnnGetProperty(int which, int* value) {
  const auto v = library_version("cudnn", 13);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}
METAPROF_CUDA const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
METAPROF_CUDA void cudnnGetLastErrorString(char* text, size_t length) {
  if (length > 0) text[0] = 0;
}

METAPROF_CUDA int cudnnCreate(Handle** out) {
  *out = new Handle;
  return 0;
}
METAPROF_CUDA int cudnnDestroy(Handle* handle) {
  delete handle;
  return 0;
}
METAPROF_CUDA int cudnnSetStream(Handle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
METAPROF_CUDA int cudnnGetStream(const Handle* handle, void** stream) {
  *stream = handle->stream;
  return 0;
}

METAPROF_CUDA int cudnnCreateTensorDescriptor(Tensor** out) {
  *out = new Tensor;
  return 0;
}
METAPROF_CUDA int cudnnDestroyTensorDescriptor(Tensor* tensor) {
  delete tensor;
  return 0;
}
METAPROF_CUDA int cudnnSetTensorNdDescriptor(Tensor* tensor, int type, int dims, const int* sizes,
                                             const int* strides) {
  *tensor = {type, {sizes, sizes + dims}, {strides, strides + dims}};
  return 0;
}
METAPROF_CUDA int cudnnSetTensor4dDescriptor(Tensor* tensor, int, int type, int n, int c, int h, int w) {
  *tensor = {type, {n, c, h, w}, {c * h * w, h * w, w, 1}};
  return 0;
}
METAPROF_CUDA int cudnnGetTensorNdDescriptor(const Tensor* tensor, int room, int* type, int* dims, int* sizes,
                                             int* strides) {
  *type = tensor->type;
  *dims = int(tensor->sizes.size());
  for (int i = 0; i < room && i < *dims; ++i) {
    sizes[i] = tensor->sizes[size_t(i)];
    strides[i] = tensor->strides[size_t(i)];
  }
  return 0;
}
METAPROF_CUDA int cudnnCreateFilterDescriptor(Tensor** out) { return cudnnCreateTensorDescriptor(out); }
METAPROF_CUDA int cudnnDestroyFilterDescriptor(Tensor* filter) {
  return cudnnDestroyTensorDescriptor(filter);
}
METAPROF_CUDA int cudnnSetFilterNdDescriptor(Tensor* filter, int type, int, int dims, const int* sizes) {
  *filter = {type, {sizes, sizes + dims}, {}};
  return 0;
}
METAPROF_CUDA int cudnnGetFilterNdDescriptor(const Tensor* filter, int room, int* type, int* format,
                                             int* dims, int* sizes) {
  *type = filter->type;
  *format = 0;  // CUDNN_TENSOR_NCHW
  *dims = int(filter->sizes.size());
  for (int i = 0; i < room && i < *dims; ++i) sizes[i] = filter->sizes[size_t(i)];
  return 0;
}

// Descriptors that nobody asks for what they hold.
METAPROF_CUDA int cudnnCreateConvolutionDescriptor(void** out) { return give_handle(out); }
METAPROF_CUDA int cudnnCreateActivationDescriptor(void** out) { return give_handle(out); }
METAPROF_CUDA int cudnnCreateDropoutDescriptor(Dropout** out) {
  *out = new Dropout;
  return 0;
}
METAPROF_CUDA int cudnnDestroyDropoutDescriptor(Dropout* dropout) {
  delete dropout;
  return 0;
}
METAPROF_CUDA int cudnnSetDropoutDescriptor(Dropout* dropout, void*, float rate, void*, size_t,
                                            unsigned long long) {
  dropout->rate = rate;
  return 0;
}
METAPROF_CUDA int cudnnRestoreDropoutDescriptor(Dropout* dropout, void*, float rate, void*, size_t,
                                                unsigned long long) {
  dropout->rate = rate;
  return 0;
}
METAPROF_CUDA int cudnnCreatePoolingDescriptor(void** out) { return give_handle(out); }
METAPROF_CUDA int cudnnCreateCTCLossDescriptor(void** out) { return give_handle(out); }
METAPROF_CUDA int cudnnCreateSpatialTransformerDescriptor(void** out) { return give_handle(out); }

// The states of the generator behind dropout: as in meta/ops/rules/library.cpp.
METAPROF_CUDA int cudnnDropoutGetStatesSize(Handle*, size_t* bytes) {
  using metaprof::emulator::environment;
  constexpr size_t of_h200 = 6488064, of_recordings = 3244032;
  *bytes = environment().cudnn.empty() ? of_recordings : of_h200;
  return 0;
}

METAPROF_SIZE(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, 8, size_t)
METAPROF_SIZE(cudnnGetBatchNormalizationBackwardExWorkspaceSize, 10, size_t)
METAPROF_SIZE(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, 5, size_t)
METAPROF_SIZE(cudnnGetCTCLossWorkspaceSize, 8, size_t)
METAPROF_SIZE(cudnnGetCTCLossWorkspaceSize_v8, 5, size_t)
METAPROF_SIZE(cudnnGetConvolutionForwardWorkspaceSize, 6, size_t)
METAPROF_SIZE(cudnnGetConvolutionBackwardDataWorkspaceSize, 6, size_t)
METAPROF_SIZE(cudnnGetConvolutionBackwardFilterWorkspaceSize, 6, size_t)

namespace {

struct AlgorithmPerformance {  // cudnnConvolutionFwdAlgoPerf_t and its like
  int algorithm, status;
  float milliseconds;
  size_t memory;
  int determinism, math_type, reserved[3];
};
static_assert(sizeof(AlgorithmPerformance) == 48);

// The older API's choice: one algorithm, number 1 (0 would read as the one that is not deterministic).
int give_algorithm(int wanted, int* found, AlgorithmPerformance* out) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) *out = {1, 0, 0.01F, 0, 1, 0, {}};
  return wanted > 0 ? 0 : kNotSupported;
}

}  // namespace

METAPROF_CUDA int cudnnGetConvolutionForwardAlgorithm_v7(METAPROF_WORDS_5, int wanted, int* found,
                                                         AlgorithmPerformance* out) {
  return give_algorithm(wanted, found, out);
}
METAPROF_CUDA int cudnnGetConvolutionBackwardDataAlgorithm_v7(METAPROF_WORDS_5, int wanted, int* found,
                                                              AlgorithmPerformance* out) {
  return give_algorithm(wanted, found, out);
}
METAPROF_CUDA int cudnnGetConvolutionBackwardFilterAlgorithm_v7(METAPROF_WORDS_5, int wanted, int* found,
                                                                AlgorithmPerformance* out) {
  return give_algorithm(wanted, found, out);
}
METAPROF_CUDA int cudnnFindConvolutionForwardAlgorithmEx(METAPROF_WORDS_8, int wanted, int* found,
                                                         AlgorithmPerformance* out, void*, size_t) {
  return give_algorithm(wanted, found, out);
}
METAPROF_CUDA int cudnnFindConvolutionBackwardDataAlgorithmEx(METAPROF_WORDS_8, int wanted, int* found,
                                                              AlgorithmPerformance* out, void*, size_t) {
  return give_algorithm(wanted, found, out);
}
METAPROF_CUDA int cudnnFindConvolutionBackwardFilterAlgorithmEx(METAPROF_WORDS_8, int wanted, int* found,
                                                                AlgorithmPerformance* out, void*, size_t) {
  return give_algorithm(wanted, found, out);
}
