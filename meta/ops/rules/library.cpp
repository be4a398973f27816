#include "meta/ops/rules/library.h"

#include "meta/platform/platform.h"

namespace metaprof {
namespace {

enum class Library : uint32_t { cublas = 0, cublas_lt = 1, cudnn_dropout = 2 };

// By device, handle and stream: the engine's device thread has handles of its own.
Ref<Storage>& kept_workspace(Session& session, Library library, Device device) {
  const auto handle = static_cast<uint32_t>(device.index) << 1 | uint32_t{session.backward_thread};
  return session.library_workspaces[static_cast<uint32_t>(library) << 24 | handle << 16 | session.stream];
}

Ref<Storage> new_workspace(Session& session, Device device, Bytes bytes, std::string_view name) {
  Ref<Storage> workspace = session.allocate(device, bytes.count, Category::workspace);
  session.trace.storages[workspace->id].name = session.trace.intern(name);
  return workspace;
}

// One that is not kept lives as long as its handle.
Ref<Storage> take_workspace(Call& call, Library library, bool keep, Bytes bytes, std::string_view name) {
  const Device device = call.device();
  if (!device.is_cuda()) return {};
  if (!keep) return new_workspace(call.session, device, bytes, name);
  Ref<Storage>& kept = kept_workspace(call.session, library, device);
  if (!kept) kept = new_workspace(call.session, device, bytes, name);
  return kept;
}

}  // namespace

void cublas_workspace(Call& call) {
  const Platform& platform = call.platform();
  take_workspace(call, Library::cublas, platform.framework.keeps_cublas_workspaces,
                 platform.cublas_workspace(), "cuBLAS workspace");
}

void cublas_lt_workspace(Call& call) {
  const Platform& platform = call.platform();
  const auto take_own = [&](bool keep) {
    return take_workspace(call, Library::cublas_lt, keep, platform.cublas_lt_workspace(),
                          "cuBLASLt workspace");
  };
  // The handle that cuBLASLt is called with is cuBLAS's, and gets its workspace where these are kept.
  switch (platform.framework.cublas_lt_workspace) {
    case CublasLtWorkspace::per_call_around_cublas: {
      const Ref<Storage> own = take_own(false);
      return cublas_workspace(call);
    }
    case CublasLtWorkspace::kept: {
      cublas_workspace(call);
      take_own(true);
      return;
    }
    case CublasLtWorkspace::shared_with_cublas: return cublas_workspace(call);
    case CublasLtWorkspace::per_call: take_own(false);
  }
}

Tensor dropout_state(Call& call, bool needed) {
  // cudnnDropoutGetStatesSize of an H200 (recorded: lstm-lm); the library alone knows it for other devices.
  constexpr int64_t bytes = 3244032;
  Session& session = call.session;
  const Device device = call.device();
  const uint32_t key =
      static_cast<uint32_t>(Library::cudnn_dropout) << 24 | static_cast<uint32_t>(device.index) << 17;
  Ref<Storage>& state = session.library_workspaces[key];
  if (!state && !needed) return {};
  if (!state) {
    call.temporary({}, DType::i64);  // the seed is drawn on the device and read
    state = new_workspace(session, device, {bytes}, "cuDNN dropout state");
  }
  Tensor tensor(new TensorImpl(Sizes{bytes}, Sizes{1}, DType::u8, device));
  tensor->storage = state;
  return tensor;
}

}  // namespace metaprof
