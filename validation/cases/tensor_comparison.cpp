#include "validation/cases/tensor_comparison.h"

#include <fmt/format.h>

namespace metaprof {
namespace {

// "f32[2,3]/1,2+4g"
std::string geometry_text(DType dtype, SizesView sizes, SizesView strides, int64_t offset,
                          bool requires_grad) {
  std::string text = std::string(short_name(dtype)) + to_string(sizes);
  if (!is_contiguous(sizes, strides))
    text += fmt::format("/{}", fmt::join(strides.begin(), strides.end(), ","));
  if (offset != 0) text += fmt::format("+{}", offset);
  return requires_grad ? text + 'g' : text;
}

bool same_parts(const RecordedTensor& recorded, const Tensor& ours) {
  if (!ours.is_sparse()) return recorded.layout.empty();
  if (recorded.layout != "sparse" || !ours->extra || ours->extra->parts.size() != recorded.parts.size())
    return false;
  for (size_t i = 0; i < recorded.parts.size(); ++i)
    if (!same_geometry(recorded.parts[i], Tensor(ours->extra->parts[i]))) return false;
  return true;
}

}  // namespace

bool same_geometry(const RecordedTensor& recorded, const Tensor& ours) {
  if (!ours.defined() || recorded.dtype != ours.dtype() || recorded.sizes != ours.sizes()) return false;
  if (recorded.on_host != ours.device().is_cpu() || !same_parts(recorded, ours)) return false;
  if (ours.is_sparse()) return true;
  if (recorded.offset != ours->offset) return false;
  // A recording leaves out the strides of a contiguous tensor, whatever those of its dimensions of size 1
  // are.
  if (is_contiguous(recorded.sizes, recorded.strides)) return ours->contiguous;
  return recorded.strides == ours.strides();
}

bool same_tensor(const RecordedTensor& recorded, const Tensor& ours, StorageMap& map) {
  if (!same_geometry(recorded, ours)) return false;
  if (ours.is_sparse()) {
    for (size_t i = 0; i < recorded.parts.size(); ++i)
      if (!same_tensor(recorded.parts[i], Tensor(ours->extra->parts[i]), map)) return false;
    return true;
  }
  if (recorded.storage == 0 && !(map.gpu_begins_at_zero && !recorded.on_host))
    return !ours->storage || ours->storage->bytes == 0;
  return ours->storage && map.match(recorded.storage, ours->storage->id);
}

std::string show(const Tensor& ours, const StorageMap& map) {
  if (!ours.defined()) return "None";
  if (ours.is_sparse()) {
    std::string text = std::string(short_name(ours.dtype())) + to_string(SizesView(ours.sizes())) + "sparse(";
    for (const Ref<TensorImpl>& part : ours->extra->parts)
      text += (text.back() == '(' ? "" : " ") + show(Tensor(part), map);
    return text + ")";
  }
  std::string text =
      geometry_text(ours.dtype(), ours.sizes(), ours.strides(), ours->offset, ours.requires_grad());
  text += ours.device().is_cpu() ? "@h" : "@";
  if (!ours->storage || ours->storage->bytes == 0) return text + "0";
  const int64_t recorded = map.recorded(ours->storage->id);
  return text + (recorded ? std::to_string(recorded) : fmt::format("?{}", ours->storage->id));
}

std::string show(const RecordedTensor& recorded) {
  if (recorded.layout == "sparse")
    return fmt::format("{}{}sparse({} {})", short_name(recorded.dtype), to_string(SizesView(recorded.sizes)),
                       show(recorded.parts[0]), show(recorded.parts[1]));
  const std::string text = geometry_text(recorded.dtype, recorded.sizes, recorded.strides, recorded.offset,
                                         recorded.requires_grad);
  return fmt::format("{}@{}{}", text, recorded.on_host ? "h" : "", recorded.storage);
}

std::string show(const RecordedValue& recorded) {
  if (recorded.kind == RecordedValue::Kind::tensor) return show(recorded.tensor[0]);
  if (recorded.kind != RecordedValue::Kind::list) return "None";
  std::string text = "(";
  for (const RecordedValue& element : recorded.list) text += (text.back() == '(' ? "" : " ") + show(element);
  return text + ")";
}

}  // namespace metaprof
