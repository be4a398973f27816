#include "meta/ops/indexing/advanced_index.h"

#include <fmt/format.h>

#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"

namespace metaprof {
namespace {

bool is_mask(const Tensor& index) { return index.dtype() == DType::b8 || index.dtype() == DType::u8; }

// A tensor of this dtype on this device.
Tensor converted(Call& c, const Tensor& index, DType dtype, Device device, IndexUse use) {
  if (index.dtype() == dtype && index.device() == device) return index;
  if (use != IndexUse::geometry) return call<"to.device">(c.session, index, device, dtype);
  return Tensor(
      new TensorImpl(index.sizes(), dense_strides_like(index.sizes(), index.strides()), dtype, device));
}

// How many elements of the masks are true: the size of the result's dimension that they become.
int64_t true_elements(const Call& c, const Tensor& self, const Value::Tensors& given, SizesView values) {
  size_t rank = 1, indexed = 0, first = 0, dims = 0;
  bool apart = false, ended = false;
  int64_t largest = 0;
  for (const Tensor& index : given) {
    if (!index.defined()) {
      ended = indexed > 0;
      ++dims;
      continue;
    }
    if (indexed == 0) first = dims;
    apart |= ended;
    const bool mask = is_mask(index);
    const auto taken = mask ? size_t(index.dim()) : 1;
    largest = std::max(largest, mask ? index.numel() : 0);
    rank = std::max(rank, mask ? 1 : size_t(index.dim()));
    indexed += taken;
    dims += taken;
  }
  const size_t at = (apart ? 0 : first) + rank - 1;
  // What is put may have fewer dimensions than the result of taking.
  const SizesView told = values.empty() ? c.session.sizes_by_data.first_result : values;
  const size_t result_dims = self.sizes().size() + rank - indexed;
  const size_t missing = result_dims - std::min(told.size(), result_dims);
  if (at >= missing && at - missing < told.size() && (values.empty() || told[at - missing] != 1))
    return told[at - missing];
  // One value for all places: no size tells how many they are.
  return values.empty() || c.session.sizes_by_data.first_result.empty() ? 0 : largest;
}

// The places of a mask's true elements: one index tensor per dimension.
void add_places(Call& c, const Tensor& mask, int64_t count, Device device, IndexUse use,
                std::vector<Tensor>& out) {
  if (use != IndexUse::geometry) {
    const WithSizeByData found(c.session, count);
    const Tensor places = converted(c, call<"nonzero">(c.session, mask), DType::i64, device, use);
    for (int64_t d = 0; d < mask.dim(); ++d) out.push_back(call<"select.int">(c.session, places, 1, d));
    return;
  }
  for (int64_t d = 0; d < mask.dim(); ++d)
    out.push_back(Tensor(new TensorImpl(Sizes{count}, Sizes{1}, DType::i64, device)));
}

// expandTensors: index tensors before they are seen under one size. Those of the host that need the device
// come there as small as they are.
std::vector<Tensor> taken(Call& c, const Value::Tensors& given, int64_t count, Device device, IndexUse use) {
  std::vector<Tensor> indices;
  for (const Tensor& index : given) {
    if (!index.defined()) {
      indices.emplace_back();
      continue;
    }
    const Device target = use == IndexUse::accumulation ? index.device() : device;
    if (is_mask(index)) {
      add_places(c, index, count, target, use, indices);
    } else {
      indices.push_back(converted(c, index, index.dtype(), target, use));
    }
  }
  return indices;
}

void widen(Call& c, std::vector<Tensor>& indices, IndexUse use) {
  for (Tensor& index : indices)
    if (index.defined()) index = converted(c, index, DType::i64, index.device(), use);
}

// The kernel of the device steps through all index tensors alike: where their strides differ, all become
// contiguous.
void align(Call& c, std::vector<Tensor>& indices, IndexUse use) {
  const Tensor* one = nullptr;
  bool alike = true;
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    if (one) alike &= one->strides() == index.strides();
    one = &index;
  }
  if (alike || !one->is_cuda()) return;
  std::vector<Tensor> copies;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      copies.emplace_back();
    } else if (use == IndexUse::geometry) {
      copies.push_back(alias(index, index.sizes(), contiguous_strides(index.sizes()), 0));
    } else {
      copies.push_back(c.contiguous(index));
    }
  }
  indices = std::move(copies);
}

// A tensor's geometry under broadcast sizes, over the same storage if there is one.
Tensor expanded(const Tensor& index, const Sizes& sizes) {
  if (index.sizes() == sizes) return index;
  Sizes strides(sizes.size(), 0);
  const size_t shift = sizes.size() - index.sizes().size();
  for (size_t d = 0; d < index.sizes().size(); ++d)
    if (index.sizes()[d] != 1 || sizes[d + shift] == 1) strides[d + shift] = index.strides()[d];
  return alias(index, sizes, strides, index->offset);
}

}  // namespace

AdvancedIndex::AdvancedIndex(Call& c, const Tensor& self, const Value::Tensors& given, IndexUse use,
                             SizesView values) {
  for (const Tensor& index : given) reads_data |= index.defined() && is_mask(index);
  const int64_t trues = reads_data ? true_elements(c, self, given, values) : 0;
  indices = taken(c, given, trues, self.device(), use);
  if (use == IndexUse::accumulation) widen(c, indices, use);
  if (int64_t(indices.size()) > self.dim())
    c.error(fmt::format("too many indices ({}) for {}", indices.size(), describe(self)));
  indices.resize(self.sizes().size());
  SmallVector<const Tensor*, 6> defined;
  for (const Tensor& index : indices)
    if (index.defined()) defined.push_back(&index);
  count = int64_t(defined.size());
  if (count == 0) c.error("needs at least one index tensor");
  index_sizes = broadcast_all(c, defined);
  for (Tensor& index : indices)
    if (index.defined()) index = expanded(index, index_sizes);
  move_to_front(self);
  if (use == IndexUse::accumulation) return;
  widen(c, indices, use);
  align(c, indices, use);
}

// Indexed dimensions that are apart move to the front.
void AdvancedIndex::move_to_front(const Tensor& self) {
  while (first < int64_t(indices.size()) && !indices[size_t(first)].defined()) ++first;
  for (int64_t d = first; d < first + count; ++d) moved |= !indices[size_t(d)].defined();
  source = self;
  if (!moved) return;
  Sizes order;
  for (int whole = 0; whole < 2; ++whole)
    for (size_t d = 0; d < indices.size(); ++d)
      if (indices[d].defined() == !whole) order.push_back(int64_t(d));
  std::vector<Tensor> permuted;
  Sizes sizes, strides;
  for (int64_t d : order) {
    permuted.push_back(indices[size_t(d)]);
    sizes.push_back(self.sizes()[size_t(d)]);
    strides.push_back(self.strides()[size_t(d)]);
  }
  indices = std::move(permuted);
  source = alias(self, sizes, strides, self->offset);
  first = 0;
}

Sizes AdvancedIndex::result_sizes() const {
  const Sizes& sizes = source.sizes();
  Sizes out(sizes.begin(), sizes.begin() + first);
  out.append(index_sizes.begin(), index_sizes.end());
  out.append(sizes.begin() + first + count, sizes.end());
  return out;
}

Sizes AdvancedIndex::result_strides() const {
  const Sizes sizes = result_sizes();
  const Sizes& from = source.strides();
  // The source does not move along the indexed dimensions, the index tensors not along the others.
  Sizes strides(from.begin(), from.begin() + first);
  strides.resize(strides.size() + index_sizes.size(), 0);
  strides.append(from.begin() + first + count, from.end());
  std::vector<Tensor> operands = {alias(source, sizes, strides, 0)};
  const size_t after = sizes.size() - size_t(first) - index_sizes.size();
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    Sizes padded(size_t(first), 0);
    padded.append(index.strides().begin(), index.strides().end());
    padded.resize(padded.size() + after, 0);
    operands.push_back(alias(index, sizes, padded, 0));
  }
  SmallVector<const Tensor*, 6> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  return metaprof::result_strides(sizes, pointers);
}

}  // namespace metaprof
