#pragma once
// A Session owns what a process of the framework owns: devices, modes, the trace being written, library
// workspaces, autograd's state. There are no globals: two sessions can run on two threads.

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "meta/op/registry.h"
#include "meta/session/questions.h"
#include "meta/tensor/value.h"

namespace metaprof {

class Backend;
class PlannedWorkspaces;  // meta/platform/planned_workspaces.h
struct Platform;          // meta/platform/platform.h: only who asks it reads it

/// What decides how operators are dispatched; pushed and popped by guards.
struct Modes {
  bool grad = true;             ///< record history
  bool inference = false;       ///< neither history nor version counters nor views
  bool below_autograd = false;  ///< inside a kernel: nested calls are neither recorded nor cast
  bool autocast = false;
  bool autocast_cache = true;
  DType autocast_dtype = DType::bf16;
  bool deterministic = false;
  /// Implementations of attention that may be chosen (torch.nn.attention.sdpa_kernel).
  bool flash_attention = true, efficient_attention = true, math_attention = true, cudnn_attention = true;
};

/// Sets a variable for the time of a scope.
template <class T>
class Scoped {
 public:
  Scoped(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Scoped() { variable_ = std::move(before_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& variable_;
  T before_;
};

/// One function of the dispatcher, e.g. autograd: does its part and calls `next(call)`.
using LayerFunction = void (*)(Call&);
enum class Layer : uint8_t { autocast, autograd, record, kernel };
inline constexpr int kLayers = 4;

/// What a layer keeps between calls.
struct LayerState {
  virtual ~LayerState() = default;
};

/// What a program says of a call whose results' sizes follow from data.
struct SizesByData {
  SizesView first_result;  ///< its sizes; no dimensions: nothing is said. Not owned
  bool assumed = false;    ///< the program does not know them either
};

class Session final : public StorageSource {
 public:
  /// `registry` must outlive the session.
  Session(const Platform& platform, const Registry& registry);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  const std::unique_ptr<const Platform> platform_;

 public:
  const Platform& platform;  ///< what differs between devices is asked for with `ask`
  /// Gets what is asked; null: nobody wants to know. Not owned.
  Questions* questions = nullptr;
  /// The answer to a question (questions.h). Whoever asks includes meta/platform/platform.h.
  template <class Question>
  auto ask(Question question) const {
    auto answer = question(platform);
    if (questions) questions->note(std::move(question), answer);
    return answer;
  }
  const Registry& registry;
  Trace trace;
  Modes modes;
  LayerFunction layers[kLayers] = {};
  /// Who computes the numbers of tensors, by DeviceType; null: they have none. Not owned.
  std::array<Backend*, kDeviceTypes> backends = {};

  // Where we are: stamped on calls and storages.
  Device device;  ///< where the program puts its tensors
  Phase phase = Phase::setup;
  Category category = Category::activation;  ///< what a storage is born as
  uint32_t module = 0;                       ///< text
  uint32_t node = 0;                         ///< 1 + index of the node being evaluated
  uint32_t call = 0;                         ///< 1 + index of the innermost call
  uint16_t depth = 0;
  uint16_t stream = 0;           ///< current stream
  bool backward_thread = false;  ///< the engine's device thread has library handles of its own
  uint64_t sequence = 0;         ///< number of the next autograd node

  Backend* backend(Device of) const { return backends[static_cast<size_t>(of.type)]; }
  bool has_backends() const { return backends[0] || backends[1]; }

  /// A new storage on a device. 0 bytes: a storage without an event.
  Ref<Storage> allocate(Device device, int64_t bytes, Category category);
  Ref<Storage> allocate(Device device, int64_t bytes) { return allocate(device, bytes, category); }
  /// The same of as many bytes as the platform says (Questions::note_size).
  template <class Question>
  Ref<Storage> allocate_asking(Device device, Category category, Question question) {
    Ref<Storage> storage = allocate(device, question(platform), category);
    if (questions) trace.storages[storage->id].size_of_platform = questions->note_size(std::move(question));
    return storage;
  }
  /// A new tensor with memory for it.
  Tensor empty_strided(SizesView sizes, SizesView strides, DType dtype, Device device);
  Tensor empty(SizesView sizes, DType dtype, Device device);
  Tensor empty(SizesView sizes, DType dtype) { return empty(sizes, dtype, device); }
  /// A Python number as the framework wraps it: a 0-dimensional host tensor of f64, i64, b8 or c128.
  Tensor wrapped_number(const Value& number);
  /// The storage becomes something else from here on.
  void categorise(const Storage& storage, Category category);
  /// The trace's last word about a storage.
  void freed(const Storage& storage) override;

  void begin_phase(Phase phase, uint32_t step, int64_t micro);
  void enter_module(uint32_t path);
  void leave_module(uint32_t path);

  /// Of the call that is being run. Who makes it sets it; operators that read data ask it.
  SizesByData sizes_by_data;

  /// Memory that a library keeps for the rest of the process, by a key that says which (library, device,
  /// handle, stream).
  std::map<uint32_t, Ref<Storage>> library_workspaces;
  /// Who knows what libraries plan for one call; null: they take nothing. Must outlive the session.
  PlannedWorkspaces* planned_workspaces = nullptr;
  std::unique_ptr<LayerState> autograd;  ///< meta/autograd/graph/state.h
  std::unique_ptr<LayerState> autocast;  ///< goes before autograd's: the casts that it keeps have histories
  /// Text indices of operator and node names, by operator id.
  std::vector<uint32_t> op_texts, node_texts;
};

/// An Error: a formula needs a tensor that the program does not have.
[[noreturn]] void no_tensor_known();

/// The session that a storage comes from: only sessions make storages.
inline Session& session_of(const Storage& storage) { return static_cast<Session&>(storage.source()); }
/// Errors: the tensor is undefined, or only a geometry.
inline Session& session_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor->storage) no_tensor_known();
  return session_of(*tensor->storage);
}

/// A view: as `alias`, and it keeps the tensor that the chain of views began with.
Tensor make_view(const Tensor& of, SizesView sizes, SizesView strides, int64_t offset);

/// Bytes of a tensor with these sizes and strides.
int64_t storage_bytes(SizesView sizes, SizesView strides, DType dtype);

}  // namespace metaprof
