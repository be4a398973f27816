#include "meta/ops/rules/library.h"

#include <algorithm>

namespace metaprof {
namespace {

enum class Library : uint32_t { cublas = 0, cublas_lt = 1, cudnn_dropout = 2 };

void ensure_workspace(Call& call, Library library, int64_t bytes, std::string_view name) {
  Session& session = call.session;
  if (session.profile.type != DeviceType::cuda) return;
  const uint32_t key =
      static_cast<uint32_t>(library) << 24 | uint32_t{session.backward_thread} << 16 | session.stream;
  LibraryWorkspace& workspace = session.workspaces[key];
  if (workspace.storage) return;
  workspace.storage = session.allocate(session.profile.device(), bytes, Category::workspace);
  session.trace.storages[workspace.storage->id].name = session.trace.intern(name);
}

}  // namespace

namespace {
int64_t blas_workspace_bytes(const Call& call) {
  // aten/src/ATen/cuda/CublasHandlePool.cpp, 2.11: 32 MiB on compute capability 9.0, else 2·4 MiB + 8·16 KiB.
  const int64_t usual = call.profile().sm == 90 ? 33554432 : 8519680;
  return call.profile().cublas_workspace.value_or(usual);
}
}  // namespace

void blas_workspace(Call& call) {
  ensure_workspace(call, Library::cublas, blas_workspace_bytes(call), "cuBLAS workspace");
}

void lt_workspace(Call& call) {
  // 1 MiB per handle and stream, persistent since 2.9 (recorded: the first addmm of every model), but not
  // more than cuBLAS's own (recorded: gpt2 with CUBLAS_WORKSPACE_CONFIG=:16:8).
  const int64_t bytes =
      std::min(call.profile().cublas_lt_workspace.value_or(1048576), blas_workspace_bytes(call));
  ensure_workspace(call, Library::cublas_lt, bytes, "cuBLASLt workspace");
}

Tensor dropout_state(Call& call, bool needed) {
  // cudnnDropoutGetStatesSize of an H200 (recorded: lstm-lm); the library alone knows it for other devices.
  constexpr int64_t bytes = 3244032;
  Session& session = call.session;
  const auto key = static_cast<uint32_t>(Library::cudnn_dropout) << 24;
  Ref<Storage>& state = session.workspaces[key].storage;
  if (!state && !needed) return {};
  if (!state) {
    call.temporary({}, DType::i64);  // the seed is drawn on the device and read
    state = session.allocate(session.profile.device(), bytes, Category::workspace);
    session.trace.storages[state->id].name = session.trace.intern("cuDNN dropout state");
  }
  Tensor tensor(new TensorImpl(Sizes{bytes}, Sizes{1}, DType::u8, session.profile.device()));
  tensor->storage = state;
  return tensor;
}

}  // namespace metaprof
