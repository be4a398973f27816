#include "meta/ops/advanced_index.h"

#include <fmt/format.h>

#include "meta/ops/functions.h"
#include "meta/ops/iterator.h"

namespace metaprof {
namespace {

bool is_mask(const Tensor& index) { return index.dtype() == DType::b8 || index.dtype() == DType::u8; }

// The places of a mask's true elements: one index tensor per dimension. How many is data.
void add_places(Call& c, const Tensor& mask, bool search, std::vector<Tensor>& out) {
  if (search) {
    const Tensor places = call<"nonzero">(c.session, mask);
    for (int64_t d = 0; d < mask.dim(); ++d) out.push_back(call<"select.int">(c.session, places, 1, d));
    return;
  }
  for (int64_t d = 0; d < mask.dim(); ++d)
    out.push_back(Tensor(new TensorImpl(Sizes{0}, Sizes{1}, DType::i64, mask.device())));
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

AdvancedIndex::AdvancedIndex(Call& c, const Tensor& self, const Value::Tensors& given, bool search_masks) {
  for (const Tensor& index : given) {
    if (index.defined() && is_mask(index)) {
      reads_data = true;
      add_places(c, index, search_masks, indices);
    } else {
      indices.push_back(index);
    }
  }
  if (int64_t(indices.size()) > self.dim())
    c.error(fmt::format("too many indices ({}) for {}", indices.size(), describe(self)));
  indices.resize(self.sizes().size());
  SmallVector<const Tensor*, 6> defined;
  for (const Tensor& index : indices)
    if (index.defined()) defined.push_back(&index);
  index_sizes = broadcast_all(c, defined);
  for (Tensor& index : indices)
    if (index.defined()) index = expanded(index, index_sizes);

  // Indexed dimensions that are apart move to the front.
  count = int64_t(defined.size());
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

Tensor wide_index(Call& c, const Tensor& index) {
  return index.dtype() == DType::i32 ? Tensor(call<"to.dtype">(c.session, index, DType::i64)) : index;
}

void AdvancedIndex::move_to_source(Call& c) {
  for (Tensor& index : indices)
    if (index.defined() && index.device() != source.device())
      index = call<"to.device">(c.session, index, source.device(), index.dtype());
  for (Tensor& index : indices)
    if (index.defined()) index = wide_index(c, index);
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
    const Sizes own = index->dense ? index.strides() : contiguous_strides(index_sizes);
    padded.append(own.begin(), own.end());
    padded.resize(padded.size() + after, 0);
    operands.push_back(alias(index, sizes, padded, 0));
  }
  SmallVector<const Tensor*, 6> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  return metaprof::result_strides(sizes, pointers);
}

std::vector<Tensor> AdvancedIndex::contiguous_indices(Call& c) const {
  std::vector<Tensor> copies;
  const Tensor* one = nullptr;
  bool alike = true;
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    if (one) alike &= one->strides() == index.strides();
    one = &index;
  }
  if (alike || !source.is_cuda()) return copies;
  for (const Tensor& index : indices)
    if (index.defined()) copies.push_back(c.contiguous(index));
  return copies;
}

}  // namespace metaprof
