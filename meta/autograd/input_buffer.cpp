#include "meta/autograd/input_buffer.h"

namespace metaprof {

bool can_accumulate_in_place(const Tensor& gradient) {
  return !gradient.is_sparse() && gradient->dense && gradient->use_count() == 1 && gradient->storage &&
         gradient->storage->use_count() == 1;
}

namespace {

// Every storage of a tensor: one, or those of a sparse tensor's parts.
template <class Visit>
void for_each_storage(const Tensor& tensor, Visit visit) {
  if (!tensor.is_sparse()) return visit(*tensor->storage);
  for (const Ref<TensorImpl>& part : tensor->extra->parts) visit(*part->storage);
}

// torch/csrc/autograd/input_buffer.cpp, 2.11: on which stream a gradient is accumulated, by whose device it
// is on. The stream waits for the producer, and each storage is marked as used on it.
void synchronise(Session& session, const Tensor& gradient, Stream producer, Stream consumer) {
  const Device device = gradient.device();
  if (!device.is_cuda()) return;  // (1) its own device, no stream
  Stream accumulates, ready;
  if (producer.device == device && consumer.device == device) {  // (2)
    accumulates = consumer;
    ready = producer;
  } else if (consumer.device == device) {  // (3)
    accumulates = consumer;
    ready = Stream{consumer.device, 0};
  } else if (producer.device == device) {  // (4)
    accumulates = Stream{producer.device, 0};
    ready = producer;
  } else {   // (5)
    return;  // the default stream of the gradient's device, which made it
  }
  if (accumulates == ready) return;
  session.trace.add({.kind = Event::Kind::wait, .stream = accumulates.id, .id = ready.id});
  for_each_storage(gradient, [&](const Storage& storage) {
    session.trace.add({.kind = Event::Kind::record_stream, .stream = accumulates.id, .id = storage.id});
  });
}

}  // namespace

void InputBuffer::add(Session& session, size_t position, Tensor gradient, Stream producer, Stream consumer) {
  if (!gradient.defined()) return;
  synchronise(session, gradient, producer, consumer);
  Scoped<uint16_t> on_stream(session.stream,
                             gradient.device() == consumer.device ? consumer.id : uint16_t{0});
  Tensor& held = gradients_[position];
  if (!held.defined()) {
    held = std::move(gradient);
    return;
  }
  const bool grad_mode = session.modes.grad;
  if (held->layout == Layout::sparse) {  // what is dense comes first, whichever came first here
    if (!grad_mode && can_accumulate_in_place(gradient)) {
      call<"add_.Tensor">(session, gradient, held);
      held = std::move(gradient);
    } else {
      held = call<"add.Tensor">(session, gradient, held);
    }
    return;
  }
  if (!grad_mode && can_accumulate_in_place(held)) {
    call<"add_.Tensor">(session, held, gradient);
  } else {
    held = call<"add.Tensor">(session, held, gradient);
  }
}

}  // namespace metaprof
