// NCCL: communicators over ranks that need not exist.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/log.h"
#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/versions.h"
#include "capture/emulator/nccl/communicator.h"

using namespace metaprof::emulator;
using namespace metaprof::emulator::nccl;

namespace {

constexpr size_t kNameLength = 33;

struct UniqueId {  // ncclUniqueId
  char bytes[128];
  /// Of the communicator's files.
  std::string name() const { return {bytes, strnlen(bytes, kNameLength)}; }
};

Result make(Communicator** out, int ranks, int rank, const std::string& name = {}) {
  *out = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) return invalid_argument;
  if (enter() != success) return unhandled_cuda_error;
  activate(current_device());
  *out = new Communicator{ranks, rank, current_device(), std::make_shared<Exchange>(name, ranks, rank), name};
  log_communicator(rank, ranks);
  return done;
}

}  // namespace

METAPROF_CUDA Result ncclGetVersion(int* version) {
  const Version v = library_version("nccl", 13);
  *version = v.major * 10000 + v.minor * 100 + v.patch;
  return done;
}
METAPROF_CUDA const char* ncclGetErrorString(Result result) {
  switch (result) {
    case done: return "no error";
    case unhandled_cuda_error: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case invalid_argument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  }
  return "unknown result code";
}
METAPROF_CUDA const char* ncclGetLastError(const Communicator*) { return ""; }

METAPROF_CUDA Result ncclGetUniqueId(UniqueId* id) {
  *id = {};
  std::random_device random;
  for (size_t i = 0; i + 1 < kNameLength; ++i) id->bytes[i] = "0123456789abcdef"[random() % 16];
  return done;
}
METAPROF_CUDA Result ncclCommGetUniqueId(Communicator*, UniqueId* id) { return ncclGetUniqueId(id); }

METAPROF_CUDA Result ncclCommInitRank(Communicator** out, int ranks, UniqueId id, int rank) {
  return make(out, ranks, rank, id.name());
}
METAPROF_CUDA Result ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId id, int rank, void*) {
  return make(out, ranks, rank, id.name());
}
METAPROF_CUDA Result ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int, UniqueId* ids,
                                              void*) {
  return make(out, ranks, rank, ids[0].name());
}
METAPROF_CUDA Result ncclCommInitAll(Communicator** out, int ranks, const int* devices) {
  UniqueId id;
  ncclGetUniqueId(&id);
  for (int i = 0; i < ranks; ++i) {
    if (const Result result = make(&out[i], ranks, i, id.name())) return result;
    out[i]->device = devices ? devices[i] : i;
  }
  return done;
}
// Each rank says its color and key; those of one color are in the new communicator, in the order of their keys. Where they
// say nothing it is taken to be as large as the old one.
METAPROF_CUDA Result ncclCommSplit(Communicator* from, int color, int key, Communicator** out, void*) {
  *out = nullptr;
  if (!from) return invalid_argument;
  constexpr int nowhere = -1;  // NCCL_SPLIT_NOCOLOR
  if (!from->exchange->possible()) return color == nowhere ? done : make(out, from->ranks, from->rank);
  const int own[] = {color, key};
  const int64_t number =
      from->exchange->send(Exchange::kAll, std::string(reinterpret_cast<const char*>(own), sizeof own));
  if (color == nowhere) return done;
  std::vector<std::pair<int, int>> members;  // key and old rank
  for (int rank = 0; rank < from->ranks; ++rank) {
    const Sent sent = from->exchange->receive(rank, Exchange::kAll, number);
    int said[] = {color, rank};  // of one that is not there
    if (sent && sent->size() == sizeof said) std::memcpy(said, sent->data(), sizeof said);
    if (said[0] == color) members.emplace_back(said[1], rank);
  }
  std::sort(members.begin(), members.end());
  const auto self = std::find_if(members.begin(), members.end(),
                                 [from](const auto& member) { return member.second == from->rank; });
  return make(out, int(members.size()), int(self - members.begin()),
              from->name + "." + std::to_string(number) + "." + std::to_string(color));
}
METAPROF_CUDA Result ncclCommShrink(Communicator* from, const int* excluded, int count, Communicator** out) {
  int before = 0;
  for (int i = 0; i < count; ++i) before += excluded[i] < from->rank ? 1 : 0;
  return make(out, from->ranks - count, from->rank - before);
}
METAPROF_CUDA Result ncclCommGrow(Communicator*, int ranks, const UniqueId*, int rank, Communicator** out) {
  return make(out, ranks, rank);
}
METAPROF_CUDA Result ncclCommFinalize(Communicator*) { return done; }
METAPROF_CUDA Result ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return done;
}
// What was begun is done; a program may still ask about the communicator, so it stays.
METAPROF_CUDA Result ncclCommAbort(Communicator*) { return done; }

METAPROF_CUDA Result ncclCommCount(const Communicator* communicator, int* ranks) {
  if (!communicator) return invalid_argument;
  *ranks = communicator->ranks;
  return done;
}
METAPROF_CUDA Result ncclCommUserRank(const Communicator* communicator, int* rank) {
  if (!communicator) return invalid_argument;
  *rank = communicator->rank;
  return done;
}
METAPROF_CUDA Result ncclCommCuDevice(const Communicator* communicator, int* device) {
  if (!communicator) return invalid_argument;
  *device = communicator->device;
  return done;
}
METAPROF_CUDA Result ncclCommGetAsyncError(const Communicator*, Result* result) {
  *result = done;
  return done;
}

METAPROF_CUDA Result ncclMemAlloc(void** out, size_t bytes) {
  if (enter() != success) return unhandled_cuda_error;
  activate(current_device());
  *out = reinterpret_cast<void*>(allocate(current_device(), bytes, "ncclMemAlloc"));
  return *out || bytes == 0 ? done : unhandled_cuda_error;
}
METAPROF_CUDA Result ncclMemFree(void* address) {
  return release(uintptr_t(address), Kind::device, "ncclMemFree") ? done : invalid_argument;
}
METAPROF_CUDA Result ncclCommRegister(Communicator*, void*, size_t, void** handle) {
  give_handle(handle);
  return done;
}
METAPROF_CUDA Result ncclCommDeregister(Communicator*, void*) { return done; }
METAPROF_CUDA Result ncclCommWindowRegister(Communicator*, void*, size_t, void** window, int) {
  give_handle(window);
  return done;
}
METAPROF_CUDA Result ncclCommWindowDeregister(Communicator*, void*) { return done; }
METAPROF_CUDA Result ncclRedOpCreatePreMulSum(int* operation, void*, int, int, Communicator*) {
  static std::atomic<int> next = 64;  // after the built-in ones
  *operation = next++;
  return done;
}
METAPROF_CUDA Result ncclRedOpDestroy(int, Communicator*) { return done; }

METAPROF_CUDA Result ncclGroupStart() { return done; }
METAPROF_CUDA Result ncclGroupEnd() { return done; }
