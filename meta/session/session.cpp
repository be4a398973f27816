#include "meta/session/session.h"

#include "core/error.h"
#include "meta/platform/platform.h"
#include "meta/session/backend.h"

namespace metaprof {

Session::Session(const Platform& platform, const Registry& registry)
    : platform_(std::make_unique<const Platform>(platform)),
      platform(*platform_),
      registry(registry),
      device(platform.device()) {}

Session::~Session() = default;

int64_t storage_bytes(SizesView sizes, SizesView strides, DType dtype) {
  return multiply(span_of(sizes, strides), element_size(dtype));
}

Ref<Storage> Session::allocate(Device device, int64_t bytes, Category born_as) {
  const auto id = static_cast<uint32_t>(trace.storages.size());
  trace.storages.push_back(
      {.bytes = {bytes}, .device = device, .call = call, .module = module, .category = born_as});
  if (bytes > 0)
    trace.add(
        {.kind = Event::Kind::alloc, .detail = static_cast<uint8_t>(born_as), .stream = stream, .id = id});
  return make<Storage>(*this, id, device, bytes);
}

void Session::freed(const Storage& storage) {
  if (storage.bytes > 0) trace.add({.kind = Event::Kind::free, .id = storage.id});
}

void Session::categorise(const Storage& storage, Category becomes) {
  trace.add({.kind = Event::Kind::category, .detail = static_cast<uint8_t>(becomes), .id = storage.id});
}

Tensor Session::empty_strided(SizesView sizes, SizesView strides, DType dtype, Device device) {
  Tensor tensor(new TensorImpl(sizes, strides, dtype, device));
  const int64_t bytes =
      tensor->dense ? multiply(tensor->numel, element_size(dtype)) : storage_bytes(sizes, strides, dtype);
  tensor->storage = allocate(device, bytes);
  tensor->inference = modes.inference;
  return tensor;
}

Tensor Session::empty(SizesView sizes, DType dtype, Device device) {
  return empty_strided(sizes, contiguous_strides(sizes), dtype, device);
}

Tensor Session::wrapped_number(const Value& number) {
  DType dtype = DType::i64;
  if (number.kind() == Value::Kind::real) dtype = DType::f64;
  if (number.kind() == Value::Kind::boolean) dtype = DType::b8;
  if (number.kind() == Value::Kind::complex) dtype = DType::c128;
  Tensor tensor = empty({}, dtype, kHost);
  tensor->wrapped_number = true;
  if (Backend* host = backend(kHost)) host->wrapped(tensor, number);
  return tensor;
}

void Session::begin_phase(Phase begins, uint32_t step, int64_t micro) {
  phase = begins;
  trace.add({.kind = Event::Kind::phase, .detail = static_cast<uint8_t>(begins), .id = step, .value = micro});
}

void Session::enter_module(uint32_t path) {
  module = path;
  trace.add({.kind = Event::Kind::enter, .id = path});
}

void Session::leave_module(uint32_t path) { trace.add({.kind = Event::Kind::leave, .id = path}); }

void no_tensor_known() { fail("a tensor is not known that has to be computed with"); }

Tensor make_view(const Tensor& of, SizesView sizes, SizesView strides, int64_t offset) {
  Tensor view = alias(of, sizes, strides, offset);
  if (of->inference) return view;
  view->base = of->base ? of->base : Ref<TensorImpl>(of);
  view->history_version = of->version();
  // How a view was made counts for the views of it (torch/csrc/autograd/variable.h, propagate_creation_meta).
  view->view_origin = session_of(of).modes.grad ? of->view_origin : ViewOrigin::no_grad;
  return view;
}

}  // namespace metaprof
