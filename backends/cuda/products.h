#pragma once
// Products of matrices by cuBLAS, as the framework calls it.

#include <cstdint>

#include "backends/cuda/device.h"
#include "core/dtype.h"

namespace metaprof::cuda {

/// `batch` products of [rows, inner] and [inner, columns], row by row, each behind the one before.
struct Product {
  int64_t batch = 1, rows = 0, columns = 0, inner = 0;
  DType dtype = DType::f32;
  bool tf32 = false;  ///< f32 in TF32
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(inner);
  }
};

/// Whether cuBLAS computes products of this type.
bool has_products_of(DType dtype);

class Products {
 public:
  /// Makes a handle, which takes memory of the device. Errors: cuBLAS is not there.
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// What cuBLAS works in, in place of its own; 0 bytes: its own again.
  void set_workspace(CUdeviceptr address, uint64_t bytes);
  void run(const Product& product, CUdeviceptr left, CUdeviceptr right, CUdeviceptr result, CUstream stream);
  /// 130100 is 13.1.0
  int version() const;

 private:
  void set_stream(CUstream stream);

  cublasHandle_t handle_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr workspace_ = 0;
  uint64_t workspace_bytes_ = 0;
};

}  // namespace metaprof::cuda
