#include "meta/session/call.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/platform/platform.h"

namespace metaprof {

size_t Call::index_of(Name name) const {
  const int index = op.schema.find(name.hash);
  if (index < 0) fail("record of {}: there is no argument '{}'", op.name, name.text);
  return static_cast<size_t>(index);
}

DType Call::dtype(Name name, DType otherwise) const {
  const Value& value = (*this)[name];
  if (value.is_none()) return otherwise;
  if (auto dtype = dtype_numbered(value.integer())) return *dtype;
  error(fmt::format("there is no dtype with the number {}", value.integer()));
}

Device Call::device() const {
  Device found = session.device;
  bool any = false;
  auto look = [&](const Tensor& tensor) {
    if (!tensor.defined()) return false;
    // A host scalar among device tensors does not decide.
    if (!any || tensor.is_cuda()) found = tensor.device();
    any = true;
    return tensor.dim() > 0 || tensor.is_cuda();
  };
  for (const Value& value : arguments) {
    if (value.is_tensor() && look(value.tensor())) return found;
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors())
        if (look(tensor)) return found;
  }
  return found;
}

Tensor& Call::output(SizesView sizes, SizesView strides, DType dtype, Device device) {
  results.push_back(Value(Tensor(new TensorImpl(sizes, strides, dtype, device))));
  Tensor& tensor = const_cast<Tensor&>(results.back().tensor());
  tensor->inference = session.modes.inference;
  return tensor;
}

Tensor& Call::output_like(const Tensor& other) { return output_like(other, other.dtype()); }

Tensor& Call::output_like(const Tensor& other, DType dtype) {
  if (other->dense) return output(other.sizes(), other.strides(), dtype, other.device());
  return output(other.sizes(), dense_strides_like(other.sizes(), other.strides()), dtype, other.device());
}

Tensor& Call::view(const Tensor& of, SizesView sizes, SizesView strides, int64_t offset) {
  results.push_back(Value(make_view(of, sizes, strides, offset)));
  return const_cast<Tensor&>(results.back().tensor());
}

void Call::allocate(size_t i, std::optional<int64_t> bytes) {
  const Tensor& tensor = results[i].tensor();
  if (!tensor.defined() || tensor->storage) return;
  if (!bytes)
    bytes = tensor->dense ? multiply(tensor->numel, element_size(tensor->dtype))
                          : storage_bytes(tensor.sizes(), tensor.strides(), tensor.dtype());
  tensor->storage = session.allocate(tensor.device(), *bytes);
}

void Call::allocate_all() {
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_tensor()) {
      allocate(i);
    } else if (results[i].is_tensors()) {
      for (const Tensor& tensor : results[i].tensors())
        if (tensor.defined() && !tensor->storage)
          tensor->storage = session.allocate(tensor.device(),
                                             storage_bytes(tensor.sizes(), tensor.strides(), tensor.dtype()));
    }
  }
}

void Call::adopt(size_t i, const Tensor& made) {
  const Tensor& result = results[i].tensor();
  if (!result->storage) result->storage = made->storage;
}

Tensor Call::temporary(SizesView sizes, DType dtype) {
  return temporary(sizes, contiguous_strides(sizes), dtype);
}

Tensor Call::temporary(SizesView sizes, SizesView strides, DType dtype) {
  Scoped<Category> born_as(session.category, Category::temporary);
  return session.empty_strided(sizes, strides, dtype, device());
}

Ref<Storage> Call::temporary_bytes(int64_t bytes, Category category) {
  return session.allocate(device(), bytes, category);
}

Tensor Call::contiguous(const Tensor& tensor, MemoryFormat format) {
  const bool is = format == MemoryFormat::contiguous ? tensor->contiguous
                                                     : is_channels_last(tensor.sizes(), tensor.strides());
  if (is) return tensor;
  return metaprof::call<"clone">(session, tensor, format);
}

void Call::error(std::string_view message) const {
  std::string_view module = session.trace.text(session.module);
  if (module.empty()) fail("{}: {}", op.name, message);
  fail("{}: {} ({})", op.name, message, module);
}

}  // namespace metaprof
