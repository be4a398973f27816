#include "meta/tensor/tensor.h"

#include "core/error.h"

namespace metaprof {
namespace {

// Of a tensor that is not row-major: what a program says, for which there is no tensor.
void check_strides(SizesView sizes, SizesView strides) {
  if (sizes.size() != strides.size())
    fail("a tensor has as many strides as sizes; got {} and {}", to_string(strides), to_string(sizes));
  for (const int64_t stride : strides)
    if (stride < 0) fail("strides must not be negative, got {}", to_string(strides));
}

}  // namespace

TensorImpl::TensorImpl(SizesView sizes, SizesView strides, DType dtype, Device device)
    : sizes(sizes), strides(strides), dtype(dtype), device(device) {
  refresh();
}

void TensorImpl::refresh() {
  numel = metaprof::numel(sizes);
  contiguous = sizes.size() == strides.size() && metaprof::is_contiguous(sizes, strides);
  if (!contiguous) check_strides(sizes, strides);
  dense = contiguous || is_non_overlapping_and_dense(sizes, strides);
}

void TensorImpl::drop_owner() {
  // The order of a destructor in the framework: autograd first, then the storage.
  extra.reset();
  grad_fn.reset();
  base.reset();
  storage.reset();
  drop_watcher();
}

Tensor alias(const Tensor& tensor, SizesView sizes, SizesView strides, int64_t offset) {
  Tensor view(new TensorImpl(sizes, strides, tensor.dtype(), tensor.device()));
  view->storage = tensor->storage;
  view->offset = offset;
  view->is_parameter = tensor->is_parameter;
  view->inference = tensor->inference;
  view->own_version = tensor->own_version;
  view->marks = tensor->marks;
  return view;
}

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::strided: return "strided";
    case Layout::sparse: return "COO";
    case Layout::sparse_csr: return "CSR";
    case Layout::sparse_csc: return "CSC";
    case Layout::sparse_bsr: return "BSR";
    case Layout::sparse_bsc: return "BSC";
  }
  return "";
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "None";
  return std::string(short_name(tensor.dtype())) + to_string(SizesView(tensor.sizes()));
}

}  // namespace metaprof
