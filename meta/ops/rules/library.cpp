#include "meta/ops/rules/library.h"

#include "meta/ops/rules/cudnn_sizes.h"
#include "meta/ops/rules/estimated.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

enum class Library : uint32_t {
  cublas,
  cublas_lt,
  dropout_state,
  outdated_dropout_state,  // what was kept until the generator's state was set
  graph_seed,
  graph_offset
};

constexpr uint32_t key_of(Library library, uint32_t handle, uint16_t stream) {
  return static_cast<uint32_t>(library) << 24 | handle << 16 | stream;
}
constexpr Library library_of(uint32_t key) { return static_cast<Library>(key >> 24); }

// By device, handle and stream: the engine's device thread has handles of its own.
Ref<Storage>& kept_workspace(Session& session, Library library, Device device) {
  const auto handle = static_cast<uint32_t>(device.index) << 1 | uint32_t{session.backward_thread};
  return session.library_workspaces[key_of(library, handle, session.stream)];
}

Ref<Storage> named(Session& session, Ref<Storage> workspace, std::string_view name) {
  session.trace.storages[workspace->id].name = session.trace.intern(name);
  return workspace;
}

// One that is not kept lives as long as its handle.
Ref<Storage> take_workspace(Session& session, Device device, Library library, bool keep,
                            Bytes (Platform::*bytes)() const, std::string_view name) {
  if (!device.is_cuda()) return {};
  const auto make = [&] {
    const auto count = [=](const Platform& platform) { return (platform.*bytes)().count; };
    return named(session, session.allocate_asking(device, Category::workspace, count), name);
  };
  if (!keep) return make();
  Ref<Storage>& kept = kept_workspace(session, library, device);
  if (!kept) kept = make();
  return kept;
}

void take_cublas_workspace(Session& session, Device device) {
  const Platform& platform = session.platform;
  take_workspace(session, device, Library::cublas, platform.framework.keeps_cublas_workspaces,
                 &Platform::cublas_workspace, "cuBLAS workspace");
}

void take_cublas_lt_workspace(Session& session, Device device) {
  const Platform& platform = session.platform;
  const auto take_own = [&](bool keep) {
    return take_workspace(session, device, Library::cublas_lt, keep, &Platform::cublas_lt_workspace,
                          "cuBLASLt workspace");
  };
  // The handle that cuBLASLt is called with is cuBLAS's, and gets its workspace where these are kept.
  switch (platform.framework.cublas_lt_workspace) {
    case CublasLtWorkspace::per_call_around_cublas: {
      const Ref<Storage> own = take_own(false);
      return take_cublas_workspace(session, device);
    }
    case CublasLtWorkspace::kept: {
      take_cublas_workspace(session, device);
      take_own(true);
      return;
    }
    case CublasLtWorkspace::shared_with_cublas: return take_cublas_workspace(session, device);
    case CublasLtWorkspace::per_call: take_own(false);
  }
}

// All threads and streams share cuDNN's.
Ref<Storage>& dropout_state_of(Session& session, Library which, Device device) {
  const auto handle = static_cast<uint32_t>(device.index) << 1;
  return session.library_workspaces[key_of(which, handle, /*stream=*/0)];
}

void make_dropout_state(Session& session, Device device) {
  const int64_t bytes = dropout_state_bytes(session);
  dropout_state_of(session, Library::dropout_state, device) = estimated(
      session, named(session, session.allocate(device, bytes, Category::workspace), "cuDNN dropout state"));
}

}  // namespace

void cublas_workspace(Call& call) { take_cublas_workspace(call.session, call.device()); }

void cublas_lt_workspace(Call& call) { take_cublas_lt_workspace(call.session, call.device()); }

Tensor dropout_state(Call& call, bool needed) {
  const Device device = call.device();
  Ref<Storage>& kept = dropout_state_of(call.session, Library::dropout_state, device);
  Ref<Storage>& outdated = dropout_state_of(call.session, Library::outdated_dropout_state, device);
  if (!kept && needed) {
    call.temporary({}, DType::i64);  // the seed is drawn on the device and read
    make_dropout_state(call.session, device);
    outdated.reset();
  }
  const Ref<Storage>& state = kept ? kept : outdated;
  if (!state) return {};
  const int64_t bytes = state->bytes;
  Tensor tensor(new TensorImpl(Sizes{bytes}, Sizes{1}, DType::u8, device));
  tensor->storage = state;
  return tensor;
}

void random_state_was_set(Session& session) {
  Ref<Storage>& kept = dropout_state_of(session, Library::dropout_state, session.device);
  if (kept) dropout_state_of(session, Library::outdated_dropout_state, session.device) = std::move(kept);
}

void take_library_workspaces(Session& session) {
  for (const bool backward_thread : {false, true}) {
    Scoped<bool> thread(session.backward_thread, backward_thread);
    take_cublas_lt_workspace(session, session.device);
  }
  make_dropout_state(session, session.device);
}

namespace {

bool is_of_cublas(uint32_t key) {
  return library_of(key) == Library::cublas || library_of(key) == Library::cublas_lt;
}

}  // namespace

void clear_cublas_workspaces(Session& session) {
  std::erase_if(session.library_workspaces, [](const auto& kept) { return is_of_cublas(kept.first); });
}

std::vector<uint32_t> cublas_workspaces(const Session& session) {
  std::vector<uint32_t> storages;
  for (const auto& [key, workspace] : session.library_workspaces)
    if (workspace && is_of_cublas(key)) storages.push_back(workspace->id);
  return storages;
}

Ref<Storage>& graph_seed(Session& session) {
  return session.library_workspaces[key_of(Library::graph_seed, /*handle=*/0, /*stream=*/0)];
}

Ref<Storage>& graph_offset(Session& session) {
  return session.library_workspaces[key_of(Library::graph_offset, /*handle=*/0, /*stream=*/0)];
}

}  // namespace metaprof
