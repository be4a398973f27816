#include "step/cudagraphs/pool_runner.h"

#include <algorithm>

#include "core/error.h"
#include "meta/ops/rules/library.h"

namespace metaprof {
namespace {

constexpr uint16_t kTreeStream = 1;
// torch.cuda.graph_pool_handle()
constexpr PoolId kTreePool{.first = 0, .second = 1};

}  // namespace

PoolRunner::PoolRunner(Session& session, Device device, CachingAllocator& allocator)
    : session_(session), allocator_(allocator), blocks_(session.trace, device, allocator) {}

// The manager captures an empty graph, which makes the generator's numbers, too.
void PoolRunner::make_pool() {
  empty_cache();
  const Scoped<uint16_t> on_stream(session_.stream, kTreeStream);
  generator_ = make_graph_generator(session_);
  catch_up();
  allocator_.create_pool(kTreePool);
}

void PoolRunner::add(const CompiledGraph& graph, bool runs_in_backward) {
  functions_.push_back({.graph = &graph, .in_backward = runs_in_backward});
}

MemoryHandle PoolRunner::hold(Ref<Storage> storage) {
  if (const auto known = handed_over_.find(storage->id); known != handed_over_.end())
    return std::make_shared<const HeldStorage>(known->second->address, std::move(storage));
  return std::make_shared<const HeldStorage>(++last_address_, std::move(storage));
}

const Ref<Storage>& PoolRunner::storage_of(const MemoryHandle& memory) {
  return static_cast<const HeldStorage&>(*memory).storage;
}

Ref<Storage> PoolRunner::hand_over(MemoryHandle memory) {
  Ref<Storage> storage = std::move(static_cast<const HeldStorage&>(*memory).storage);
  handed_over_.emplace(storage->id, std::move(memory));
  return storage;
}

bool PoolRunner::catch_up() {
  const size_t now = session_.trace.events.size();
  for (size_t i = fed_; i < now; ++i) {
    const Event& event = session_.trace.events[i];
    if (event.kind == Event::Kind::free) handed_over_.erase(event.id);
    if (event.kind == Event::Kind::free) overwritten_.erase(event.id);
    if (event.kind == Event::Kind::call) look_for_overwritten(session_.trace.calls[event.id], event.id);
  }
  if (!failed_) failed_ = !blocks_.feed(fed_, now);
  fed_ = now;
  return !failed_;
}

std::optional<Bytes> PoolRunner::out_of_memory() const {
  if (!failed_) return std::nullopt;
  return session_.trace.bytes(session_.trace.events[blocks_.failed()].id);
}

// torch.cuda.graph frees as much as it can before it begins.
void PoolRunner::empty_cache() {
  catch_up();
  allocator_.empty_cache();
}

// On the tree's stream, with workspaces that do not outlast it (clear_cublas_manager,
// _use_cuda_memory_pool_manager).
template <class Run>
void PoolRunner::in_pool(const Run& run) {
  clear_cublas_workspaces(session_);
  catch_up();
  allocator_.begin_pool(kTreePool, kTreeStream);
  {
    const Scoped<uint16_t> on_stream(session_.stream, kTreeStream);
    run();
    catch_up();
  }
  allocator_.end_pool(kTreePool);
  allocator_.release_pool(kTreePool);
  clear_cublas_workspaces(session_);
  catch_up();
}

// An output that is an input's memory is that input; who holds it elsewhere keeps it.
MemoryHandles PoolRunner::run_function(FunctionId id, MemoryHandles inputs) {
  const Function& function = functions_[static_cast<size_t>(id)];
  const Scoped<bool> thread(session_.backward_thread, function.in_backward);
  std::map<uint32_t, uint64_t> addresses;  // by the storage's number
  std::vector<Ref<Storage>> storages;
  for (MemoryHandle& input : inputs) {
    if (!input) {  // of a number, which has no memory
      storages.emplace_back();
      continue;
    }
    addresses[storage_of(input)->id] = input->address;
    storages.push_back(storage_of(input));
    input.reset();
  }
  MemoryHandles outputs;
  for (Ref<Storage>& output : run(session_, *function.graph, std::move(storages))) {
    if (!output) {
      outputs.push_back(nullptr);
      continue;
    }
    const auto [known, made] = addresses.emplace(output->id, last_address_ + 1);
    if (made) ++last_address_;
    outputs.push_back(std::make_shared<const HeldStorage>(known->second, std::move(output)));
  }
  return outputs;
}

MemoryHandles PoolRunner::run_eagerly(FunctionId function, MemoryHandles inputs) {
  return run_function(function, std::move(inputs));
}

MemoryHandles PoolRunner::warm_up(FunctionId function, MemoryHandles inputs) {
  MemoryHandles outputs;
  in_pool([&] { outputs = run_function(function, std::move(inputs)); });
  return outputs;
}

Ref<Storage> PoolRunner::copy_into_pool(const Ref<Storage>& storage) {
  return session_.allocate(storage->device, storage->bytes);
}

MemoryHandles PoolRunner::record(GraphNodeId node, FunctionId function, MemoryHandles inputs,
                                 const std::vector<bool>& copied) {
  catch_up();
  allocator_.begin_pool(kTreePool, kTreeStream);
  {
    const Scoped<uint16_t> on_stream(session_.stream, kTreeStream);
    MemoryHandles buffers = inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (copied[i]) buffers[i] = hold(copy_into_pool(storage_of(inputs[i])));
    inputs = std::move(buffers);
    catch_up();
  }
  allocator_.end_pool(kTreePool);
  allocator_.release_pool(kTreePool);
  clear_cublas_workspaces(session_);
  empty_cache();
  MemoryHandles outputs;
  GraphGenerator& generator = own_generators_.emplace_back(generator_);
  in_pool([&] {
    const StreamCapture capture(session_, generator);
    outputs = run_function(function, std::move(inputs));
  });
  random_state_was_set(session_);  // what it was before the recording (preserve_rng_state)
  for (const MemoryHandle& output : outputs) outputs_[node].push_back(output ? output->address : 0);
  return outputs;
}

// The allocator hears nothing of it: outputs are where the recording put them. A byte on the host stands for each, whose
// death is noticed.
MemoryHandles PoolRunner::replay(GraphNodeId node, MemoryHandles inputs) {
  inputs.clear();
  MemoryHandles outputs;
  for (const uint64_t address : outputs_.at(node))
    outputs.push_back(address == 0
                          ? nullptr
                          : std::make_shared<const HeldStorage>(address, session_.allocate(Device(), 1)));
  return outputs;
}

void PoolRunner::resume(GraphNodeId, const std::vector<uint64_t>&) {
  fail("a graph is recorded behind a replayed one: the pool's state of that moment is not modelled");
}

// The framework takes the memory away from those who hold it still, so that their next access fails
// (dealloc_current_path_weakrefs).
void PoolRunner::overwrite(const std::vector<uint64_t>& addresses) {
  catch_up();
  for (const auto& [storage, memory] : handed_over_)
    if (std::ranges::find(addresses, memory->address) != addresses.end()) overwritten_.insert(storage);
}

void PoolRunner::look_for_overwritten(const CallRecord& call, uint32_t index) {
  if (use_of_overwritten_ || overwritten_.empty()) return;
  for (uint32_t i = 0; i < call.inputs; ++i)
    if (overwritten_.contains(session_.trace.tensors[call.first_tensor + i].storage))
      use_of_overwritten_ = index;
}

}  // namespace metaprof
