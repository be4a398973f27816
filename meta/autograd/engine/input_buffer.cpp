#include "meta/autograd/engine/input_buffer.h"

#include "meta/platform/platform.h"

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

void record_use(Session& session, const Tensor& tensor, Stream stream) {
  for_each_storage(tensor, [&](const Storage& storage) {
    session.trace.add({.kind = Event::Kind::record_stream, .stream = stream.id, .id = storage.id});
  });
}

void record_wait(Session& session, Stream waits, Stream for_stream) {
  session.trace.add({.kind = Event::Kind::wait, .stream = waits.id, .id = for_stream.id});
}

}  // namespace

// torch/csrc/autograd/input_buffer.cpp, accumulate: where the sum is written. Into no tensor of a subclass
// (isTensorSubclassLike).
void InputBuffer::accumulate(Session& session, size_t position, Tensor gradient) {
  Tensor& held = gradients_[position];
  const bool by_rows = held->layout == Layout::sparse || held->layout == Layout::sparse_csr;
  if (session.modes.grad) {
    held = call<"add.Tensor">(session, held, gradient);
  } else if (by_rows && can_accumulate_in_place(gradient)) {
    call<"add_.Tensor">(session, gradient, held);
    held = std::move(gradient);
  } else if (by_rows) {
    held = call<"add.Tensor">(session, gradient, held);
  } else if (!apart_ && can_accumulate_in_place(held) && !gradient.is_sparse()) {
    call<"add_.Tensor">(session, held, gradient);
  } else {
    held = call<"add.Tensor">(session, held, gradient);
  }
}

// input_buffer.cpp, 2.8 to 2.11, "Autograd Producer-Consumer Stream Syncs". Where both nodes have the gradient's device
// and stream, there is nothing to wait for.
void InputBuffer::add_on_first_ones_stream(Session& session, size_t position, Tensor gradient,
                                           Stream producer, Stream consumer) {
  const Device device = gradient.device();
  Arrival& arrival = arrivals_[position];
  Tensor& held = gradients_[position];
  if (!held.defined()) {
    arrival.ready = producer;
    arrival.accumulates = consumer.device == device   ? consumer
                          : producer.device == device ? producer
                                                      : Stream{device, 0};
    if (consumer.device == device && consumer != producer) record_use(session, gradient, consumer);
    held = std::move(gradient);
    return;
  }
  const Stream accumulates = arrival.accumulates;
  const bool marks = accumulates.device == device;
  if (accumulates != producer) {
    record_wait(session, accumulates, producer);
    if (marks) record_use(session, gradient, accumulates);
  }
  if (accumulates != arrival.ready) {
    record_wait(session, accumulates, arrival.ready);
    if (marks) record_use(session, held, accumulates);
  }
  Scoped<uint16_t> on_stream(session.stream, accumulates.id);
  accumulate(session, position, std::move(gradient));
  arrival.ready = accumulates;
}

// input_buffer.cpp until 2.7: on which stream a gradient is accumulated, by whose device it is on. The stream waits for
// the producer, and each storage is marked as used on it.
void InputBuffer::add_by_cases(Session& session, size_t position, Tensor gradient, Stream producer,
                               Stream consumer) {
  const Device device = gradient.device();
  Stream accumulates{device, 0}, ready{device, 0};
  if (producer.device == device && consumer.device == device) {  // (2)
    accumulates = consumer;
    ready = producer;
  } else if (consumer.device == device) {  // (3)
    accumulates = consumer;
  } else if (producer.device == device) {  // (4)
    ready = producer;
  }  // (5): the default stream of the gradient's device, which made it
  if (accumulates != ready) {
    record_wait(session, accumulates, ready);
    record_use(session, gradient, accumulates);
  }
  Scoped<uint16_t> on_stream(session.stream, accumulates.id);
  Tensor& held = gradients_[position];
  if (held.defined()) return accumulate(session, position, std::move(gradient));
  held = std::move(gradient);
}

void InputBuffer::add(Session& session, size_t position, Tensor gradient, Stream producer, Stream consumer) {
  if (!gradient.defined()) return;
  const Device device = gradient.device();
  if (!device.is_cuda()) {  // no stream
    Scoped<uint16_t> on_stream(session.stream, 0);
    if (gradients_[position].defined()) return accumulate(session, position, std::move(gradient));
    gradients_[position] = std::move(gradient);
    return;
  }
  if (!session.platform.framework.first_gradient_decides_stream)
    return add_by_cases(session, position, std::move(gradient), producer, consumer);
  // A host node has no stream. The producer's is current while its gradients are handed on.
  if (!producer.device.is_cuda()) producer = {device, 0};
  if (!consumer.device.is_cuda()) consumer = producer.device == device ? producer : Stream{device, 0};
  add_on_first_ones_stream(session, position, std::move(gradient), producer, consumer);
}

// torch/csrc/autograd/engine.cpp, evaluate_function.
void InputBuffer::wait(Session& session, Stream consumer) const {
  if (!consumer.device.is_cuda() || !session.platform.framework.first_gradient_decides_stream) return;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (!gradients_[i].defined() || !gradients_[i].device().is_cuda()) continue;
    if (arrivals_[i].ready != consumer) record_wait(session, consumer, arrivals_[i].ready);
  }
}

}  // namespace metaprof
