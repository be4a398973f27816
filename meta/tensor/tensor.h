#pragma once
// Tensors without data. A Tensor is a small handle; a Storage is born through the session and dies with its
// last handle, and both moments are events of the trace.

#include <memory>
#include <vector>

#include "core/device.h"
#include "core/pool.h"
#include "core/reference.h"
#include "core/shape.h"
#include "meta/trace/trace.h"

namespace metaprof {

class Tensor;
class TensorImpl;

class Storage;

/// Where storages come from: a Session (session_of), which hears of the end of each.
class StorageSource {
 public:
  virtual void freed(const Storage& storage) = 0;

 protected:
  ~StorageSource() = default;
};

/// A block of memory that tensors look into. `bytes` is what was requested.
class Storage final : public Counted, public Pooled<Storage> {
 public:
  Storage(StorageSource& source, uint32_t id, Device device, int64_t bytes)
      : source_(source), bytes(bytes), id(id), device(device) {}
  ~Storage() override { source_.freed(*this); }

  StorageSource& source() const { return source_; }

 private:
  StorageSource& source_;

 public:
  int64_t bytes;
  uint32_t id;  ///< the number in the trace
  Device device;
  uint32_t version = 0;  ///< counts in-place writes; saved tensors compare it
  /// What a list on the host holds, where sizes follow from it; null: nobody has said it.
  std::unique_ptr<const Sizes> integers;
};

/// Counts in-place writes, where a tensor does not share its storage's count.
struct VersionCounter final : Counted {
  uint32_t writes = 0;
};

/// `sparse`: by coordinates (COO). The compressed ones differ in what is compressed, rows or columns, and in whether
/// values are elements or blocks.
enum class Layout : uint8_t { strided, sparse, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc };

/// "strided", "COO", "CSR", …
std::string_view name_of(Layout layout);

/// What a reader of the tensor has to do to what lies in memory: bits of TensorImpl::marks.
enum Mark : uint8_t { kConjugated = 1, kNegated = 2 };

/// How a view was made, which decides whether it may be written in place.
enum class ViewOrigin : uint8_t { plain, multi_output, no_grad };

/// What a tensor knows besides its geometry only if it is a leaf, has hooks or is sparse.
struct TensorExtra {
  Ref<TensorImpl> grad;  ///< .grad of a leaf, or of a tensor that retains it
  Counted* accumulator =
      nullptr;         ///< the living AccumulateGrad node of a leaf; not owned, the node clears it
  Ref<Counted> hooks;  ///< tensor hooks (meta/autograd/graph/hooks.h)
  std::vector<Ref<TensorImpl>>
      parts;  ///< COO: indices, values; compressed: compressed indices, plain indices, values
  bool retains_grad = false;
  bool coalesced = false;
};

/// A tensor. Two counts: owners (Ref<TensorImpl>, Tensor) keep the storage; those who only want its geometry
/// (Geometry) keep sizes, strides, dtype and device after the owners are gone.
class TensorImpl : public Pooled<TensorImpl> {
 public:
  TensorImpl(SizesView sizes, SizesView strides, DType dtype, Device device);

  Sizes sizes, strides;
  int64_t offset = 0;  ///< in elements
  int64_t numel;
  DType dtype;
  Device device;
  Layout layout = Layout::strided;
  bool requires_grad = false;   ///< of a leaf; others require grad because they have a grad_fn
  bool wrapped_number = false;  ///< a Python number: takes part in type promotion as one
  bool inference = false;       ///< made in inference mode
  bool contiguous;              ///< row-major
  bool dense;                   ///< non-overlapping and dense
  bool is_parameter = false;    ///< parameter or buffer: never counted as an activation
  uint8_t marks = 0;            ///< Mark
  ViewOrigin view_origin = ViewOrigin::plain;
  uint32_t history_version = 0;  ///< of a view: the storage's version when its grad_fn was right
  uint32_t output_nr = 0;        ///< which output of grad_fn this is
  Ref<Storage> storage;
  Ref<Counted> grad_fn;  ///< a Node (meta/autograd/graph/node.h); null for leaves
  Ref<TensorImpl> base;  ///< a view keeps the tensor that it is a view of (the root of a chain of views)
  std::unique_ptr<TensorExtra> extra;
  /// Of pieces of which the framework assumes that they do not share memory (unsafe_chunk …), and of their
  /// views; else null.
  Ref<VersionCounter> own_version;

  /// In-place writes to what this looks into.
  uint32_t& version() const { return own_version ? own_version->writes : storage->version; }
  uint32_t use_count() const { return owners_; }
  TensorExtra& ensure_extra() {
    if (!extra) extra = std::make_unique<TensorExtra>();
    return *extra;
  }
  /// After sizes or strides were changed in place.
  void refresh();

  /// For Ref only.
  void retain() { ++owners_; }
  void release() {
    if (--owners_ == 0) drop_owner();
  }

 private:
  friend class Geometry;
  void drop_owner();
  void drop_watcher() {
    if (--watchers_ == 0) delete this;
  }
  uint32_t owners_ = 0;
  uint32_t watchers_ = 1;  // all owners together count as one
};

/// Owning handle to a tensor; may be undefined, as gradients and optional arguments are.
class Tensor : public Ref<TensorImpl> {
 public:
  using Ref<TensorImpl>::Ref;
  Tensor(Ref<TensorImpl> ref) : Ref<TensorImpl>(std::move(ref)) {}

  bool defined() const { return get() != nullptr; }
  const Sizes& sizes() const { return (*this)->sizes; }
  const Sizes& strides() const { return (*this)->strides; }
  /// Size of a dimension that may be negative. Errors: there is no such dimension.
  int64_t size(int64_t dim) const { return size_of(sizes(), dim); }
  int64_t dim() const { return int64_t(sizes().size()); }
  int64_t numel() const { return (*this)->numel; }
  DType dtype() const { return (*this)->dtype; }
  Device device() const { return (*this)->device; }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_contiguous() const { return (*this)->contiguous; }
  bool is_sparse() const { return (*this)->layout != Layout::strided; }
  /// A view requires grad if what it looks into does, even one that no_grad mode made without a grad_fn.
  bool requires_grad() const {
    if (!defined()) return false;
    const TensorImpl& tensor = **this;
    return tensor.requires_grad || tensor.grad_fn ||
           (tensor.base && (tensor.base->requires_grad || tensor.base->grad_fn));
  }
  bool is_leaf() const { return !(*this)->grad_fn; }
  Tensor grad() const { return (*this)->extra ? Tensor((*this)->extra->grad) : Tensor(); }
};

/// The geometry of a tensor without its storage: what formulas may read for free.
class Geometry {
 public:
  Geometry() = default;
  explicit Geometry(const Tensor& tensor) : impl_(tensor.get()) {
    if (impl_) ++impl_->watchers_;
  }
  Geometry(const Geometry& other) : impl_(other.impl_) {
    if (impl_) ++impl_->watchers_;
  }
  Geometry(Geometry&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Geometry& operator=(Geometry other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~Geometry() {
    if (impl_) impl_->drop_watcher();
  }
  bool defined() const { return impl_ != nullptr; }
  const TensorImpl* operator->() const { return impl_; }
  const TensorImpl& operator*() const { return *impl_; }
  const TensorImpl* get() const { return impl_; }
  int64_t dim() const { return int64_t(impl_->sizes.size()); }

 private:
  TensorImpl* impl_ = nullptr;
};

/// A tensor of another geometry over the same storage, with no autograd history and no base.
Tensor alias(const Tensor& tensor, SizesView sizes, SizesView strides, int64_t offset);
inline Tensor alias(const Tensor& tensor) {
  return alias(tensor, tensor.sizes(), tensor.strides(), tensor->offset);
}
/// The numbers that a list on the host holds; null: nobody has said them.
inline const Sizes* integers_in(const Tensor& list) {
  const Sizes* integers = list->storage ? list->storage->integers.get() : nullptr;
  const bool whole = list->offset == 0 && list.dim() == 1 && list.is_contiguous();
  return integers && whole && int64_t(integers->size()) == list.numel() ? integers : nullptr;
}
inline void tell_integers(const Tensor& list, Sizes integers) {
  list->storage->integers = std::make_unique<const Sizes>(std::move(integers));
}
/// The format that the strides look like (the framework's `suggest_memory_format`).
inline MemoryFormat suggested_format(const TensorImpl& tensor) {
  return suggested_format(tensor.sizes, tensor.strides);
}
inline MemoryFormat suggested_format(const Tensor& tensor) { return suggested_format(*tensor); }
/// "f32[2,3]"
std::string describe(const Tensor& tensor);

}  // namespace metaprof
