#include "step/repeated_pass.h"

#include <algorithm>

#include "core/host_memory.h"
#include "meta/autograd/graph/state.h"
#include "meta/ops/rules/library.h"

namespace metaprof {
namespace {

constexpr size_t kLargeGraph = 1 << 15;  // nodes whose memory is worth giving back

}  // namespace

RepeatedPass::Place RepeatedPass::here() const {
  const Trace& trace = session_.trace;
  const PlannedWorkspaces* planned = session_.planned_workspaces;
  return {trace.events.size(),
          trace.storages.size(),
          trace.calls.size(),
          trace.nodes.size(),
          trace.tensors.size(),
          trace.edges.size(),
          trace.losses.size(),
          session_.sequence,
          autograd_state(session_).device_thread_sequence,
          planned ? planned->counts() : PlannedWorkspaces::Counts()};
}

void RepeatedPass::forward_begins(int32_t open_modules) {
  repeats_ = false;
  begin_ = here();
  open_modules_ = open_modules;
  parameters_.clear();
  for (const Tensor& parameter : placed_.trainable) {
    if (parameter.grad().defined()) return parameters_.clear();
    parameters_.push_back(parameter->storage->id);
  }
}

void RepeatedPass::loss_is_bound() { bound_ = session_.trace.events.size(); }

void RepeatedPass::forward_ends() {
  forward_nodes_ = session_.trace.nodes.size();
  forward_ended_ = session_.trace.events.size();
}

void RepeatedPass::backward_ends(const Tensor& loss) {
  if (parameters_.empty() || session_.has_backends()) return;
  end_ = here();
  left_.clear();
  accumulators_.clear();
  const auto leave = [&](const Tensor& tensor, const Tensor& of) {
    left_.push_back({of, tensor.sizes(), tensor.strides(), tensor->offset, tensor.dtype(), tensor.device(),
                     tensor->storage->id});
    return tensor->storage->id >= begin_.storages;
  };
  if (!leave(loss, {})) return;
  for (const Tensor& parameter : placed_.trainable) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.is_sparse() || gradient->storage->id == loss->storage->id || !leave(gradient, parameter))
      return;
    if (const Counted* accumulator = parameter->extra->accumulator)
      accumulators_.push_back(static_cast<const Node*>(accumulator)->record);
  }
  repeats_ = leaves_gradients_only();
}

// And lets go of nothing that was there before.
bool RepeatedPass::leaves_gradients_only() const {
  std::vector<bool> alive(end_.storages - begin_.storages);
  ptrdiff_t saved = 0;
  for (size_t i = begin_.events; i < end_.events; ++i) {
    const Event& event = session_.trace.events[i];
    saved += event.kind == Event::Kind::save;
    saved -= event.kind == Event::Kind::release;
    if (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free) continue;
    if (event.id < begin_.storages) return false;
    alive[event.id - begin_.storages] = event.kind == Event::Kind::alloc;
  }
  const auto known = [&](uint32_t storage) {
    if (storage >= begin_.storages) alive[storage - begin_.storages] = false;
  };
  for (const Left& left : left_) known(left.storage);
  for (const uint32_t workspace : cublas_workspaces(session_)) known(workspace);
  return saved == 0 && std::ranges::find(alive, true) == alive.end();
}

bool RepeatedPass::repeats(int32_t open_modules) const {
  if (!repeats_ || open_modules != open_modules_) return false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = placed_.trainable[i];
    if (parameter.grad().defined() || parameter->storage->id != parameters_[i]) return false;
  }
  return true;
}

uint32_t RepeatedPass::storage(uint32_t number) const {
  return number < begin_.storages ? number : now_.storages[number - begin_.storages];
}

uint32_t RepeatedPass::node(uint32_t number) const {
  return number < begin_.nodes ? number : now_.nodes[number - begin_.nodes];
}

// Workspaces of cuBLAS are there already. So are nodes that accumulate gradients: the graph of the forward before
// holds them until its loss goes.
void RepeatedPass::number_again() {
  const Place now = here();
  now_.calls = uint32_t(now.calls - begin_.calls);
  now_.tensors = uint32_t(now.tensors - begin_.tensors);
  now_.edges = uint32_t(now.edges - begin_.edges);
  const auto number = [](std::vector<uint32_t>& numbers, size_t begin, size_t count, size_t next,
                         const std::vector<uint32_t>& kept) {
    constexpr uint32_t kNew = ~0u;
    numbers.assign(count, kNew);
    for (uint32_t one : kept)
      if (one >= begin && one - begin < count) numbers[one - begin] = one;
    for (uint32_t& one : numbers)
      if (one == kNew) one = uint32_t(next++);
  };
  number(now_.storages, begin_.storages, end_.storages - begin_.storages, now.storages,
         cublas_workspaces(session_));
  number(now_.nodes, begin_.nodes, end_.nodes - begin_.nodes, now.nodes, accumulators_);
}

// What backward makes on the device's thread has numbers of its own.
uint64_t RepeatedPass::sequence(size_t node, uint64_t of_the_pass, const Place& now) const {
  const auto within = [&](uint64_t begin, uint64_t end) { return of_the_pass >= begin && of_the_pass < end; };
  if (node >= forward_nodes_ && within(begin_.device_thread_sequence, end_.device_thread_sequence))
    return of_the_pass + now.device_thread_sequence - begin_.device_thread_sequence;
  return within(begin_.sequence, end_.sequence) ? of_the_pass + now.sequence - begin_.sequence : of_the_pass;
}

// Lists grow while they are read, so elements are copied first.
void RepeatedPass::write_records() {
  Trace& trace = session_.trace;
  for (size_t i = begin_.storages; i < end_.storages; ++i) {
    if (storage(uint32_t(i)) == i) continue;
    StorageRecord& record = trace.storages.emplace_back(trace.storages[i]);
    if (record.call != 0) record.call += now_.calls;
  }
  for (size_t i = begin_.calls; i < end_.calls; ++i) {
    CallRecord& record = trace.calls.emplace_back(trace.calls[i]);
    record.first_tensor += now_.tensors;
    if (record.node != 0) record.node = node(record.node - 1) + 1;
  }
  for (size_t i = begin_.tensors; i < end_.tensors; ++i) {
    TensorRecord& record = trace.tensors.emplace_back(trace.tensors[i]);
    record.storage = storage(record.storage);
  }
  const Place now = here();
  for (size_t i = begin_.nodes; i < end_.nodes; ++i) {
    if (node(uint32_t(i)) == i) continue;
    NodeRecord& record = trace.nodes.emplace_back(trace.nodes[i]);
    if (record.call != 0) record.call += now_.calls;
    record.sequence = sequence(i, record.sequence, now);
    record.first_edge += now_.edges;
    if (record.inner != 0) record.inner = node(record.inner - 1) + 1;
  }
  for (size_t i = begin_.edges; i < end_.edges; ++i) {
    const uint32_t edge = trace.edges[i];
    trace.edges.push_back(edge == 0 ? 0 : node(edge - 1) + 1);
  }
  session_.sequence += end_.sequence - begin_.sequence;
  autograd_state(session_).device_thread_sequence +=
      end_.device_thread_sequence - begin_.device_thread_sequence;
}

void RepeatedPass::write_events(size_t begin, size_t end, uint32_t step) {
  Trace& trace = session_.trace;
  std::vector<uint32_t> open;  // calls and nodes
  for (size_t i = begin; i < end; ++i) {
    Event event = trace.events[i];
    switch (event.kind) {
      case Event::Kind::call: open.push_back(event.id += now_.calls); break;
      case Event::Kind::node: open.push_back(event.id = node(event.id)); break;
      case Event::Kind::end:
        event.id = open.back();
        open.pop_back();
        break;
      case Event::Kind::save:
      case Event::Kind::release: event.value = node(uint32_t(event.value)); [[fallthrough]];
      case Event::Kind::free:
      case Event::Kind::category:
      case Event::Kind::record_stream: event.id = storage(event.id); break;
      case Event::Kind::alloc:
        if (storage(event.id) == event.id) continue;
        event.id = storage(event.id);
        break;
      case Event::Kind::phase:
        event.id = step;
        session_.phase = Phase(event.detail);
        break;
      case Event::Kind::pause:
      case Event::Kind::enter:
      case Event::Kind::leave:
      case Event::Kind::wait: break;
    }
    trace.events.push_back(event);
  }
}

Tensor RepeatedPass::stand_in(const Left& left, SharedStorages& shared) const {
  const uint32_t number = storage(left.storage);
  Ref<Storage>& own = shared[number];
  if (!own) {
    const StorageRecord& record = session_.trace.storages[number];
    own = make<Storage>(session_, number, record.device, record.bytes.count);
  }
  Tensor tensor(new TensorImpl(left.sizes, left.strides, left.dtype, left.device));
  tensor->offset = left.offset;
  tensor->storage = own;
  return tensor;
}

void RepeatedPass::write_forward(uint32_t step, Tensor& loss) {
  number_again();
  write_records();
  if (session_.planned_workspaces) session_.planned_workspaces->count_again(begin_.planned, end_.planned);
  write_events(begin_.events, bound_, step);
  SharedStorages shared;
  loss = stand_in(left_[0], shared);
  if (end_.nodes - begin_.nodes > kLargeGraph) give_back_freed_memory();
  const uint32_t of_loss = session_.trace.losses[begin_.losses];
  session_.trace.losses.push_back(of_loss == 0 ? 0 : node(of_loss - 1) + 1);
  write_events(bound_, forward_ended_, step);
}

void RepeatedPass::write_backward(uint32_t step) {
  write_events(forward_ended_, end_.events, step);
  SharedStorages shared;
  for (const Left& left : left_)
    if (left.parameter.defined()) left.parameter->ensure_extra().grad = stand_in(left, shared);
}

}  // namespace metaprof
