#include "backends/cuda/products.h"

namespace metaprof::cuda {
namespace {

// aten/src/ATen/cuda/CUDABlas.cpp: sums in f32, of f64 in f64.
cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f64: return CUDA_R_64F;
    default: return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type_of(const Product& product) {
  if (product.dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

bool has_products_of(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

Products::Products() { cublas().cublasCreate(&handle_); }
Products::~Products() { cublas().cublasDestroy.try_to(handle_); }

void Products::set_workspace(CUdeviceptr address, uint64_t bytes) {
  workspace_ = address;
  workspace_bytes_ = bytes;
  set_stream(stream_);
}

// cublasSetStream takes cuBLAS back to its own workspace (cuBLAS documentation, cublasSetWorkspace).
void Products::set_stream(CUstream stream) {
  stream_ = stream;
  cublas().cublasSetStream(handle_, stream);
  if (workspace_bytes_ > 0)
    cublas().cublasSetWorkspace(handle_, reinterpret_cast<void*>(workspace_), workspace_bytes_);
}

int Products::version() const {
  int version = 0;
  cublas().cublasGetVersion(handle_, &version);
  return version;
}

// cuBLAS counts column by column: the transposed result is the product of the transposed factors in the other order.
void Products::run(const Product& product, CUdeviceptr left, CUdeviceptr right, CUdeviceptr result,
                   CUstream stream) {
  const int64_t rows = product.rows, columns = product.columns, inner = product.inner;
  const float one = 1.0f / static_cast<float>(inner),
              zero = 0;  // so that results stay as large as the factors
  const double one_f64 = 1.0 / static_cast<double>(inner), zero_f64 = 0;
  const bool f64 = product.dtype == DType::f64;
  const void* const alpha = f64 ? static_cast<const void*>(&one_f64) : &one;
  const void* const beta = f64 ? static_cast<const void*>(&zero_f64) : &zero;
  const cudaDataType type = type_of(product.dtype);
  const auto *const a = reinterpret_cast<const void*>(right), *const b = reinterpret_cast<const void*>(left);
  auto* const c = reinterpret_cast<void*>(result);
  if (stream != stream_) set_stream(stream);
  if (product.batch == 1) {
    cublas().cublasGemmEx_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, alpha, a, type, columns,
                             b, type, inner, beta, c, type, columns, compute_type_of(product),
                             CUBLAS_GEMM_DEFAULT);
    return;
  }
  cublas().cublasGemmStridedBatchedEx_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, alpha, a,
                                         type, columns, inner * columns, b, type, inner, rows * inner, beta,
                                         c, type, columns, rows * columns, product.batch,
                                         compute_type_of(product), CUBLAS_GEMM_DEFAULT);
}

}  // namespace metaprof::cuda
