// NCCL: communicators over ranks that need not exist, and collectives that are done at once. What they would bring is
// data, and device memory holds none; small values that the host wrote before are answered as if every rank had the
// same.

#include <cstdint>
#include <cstring>

#include "emulator/handle.h"
#include "emulator/machine/contents.h"
#include "emulator/machine/counters.h"
#include "emulator/machine/devices.h"
#include "emulator/machine/export.h"
#include "emulator/machine/log.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/streams.h"
#include "emulator/machine/versions.h"

using namespace metaprof::emulator;

namespace {

enum Result : int { done = 0, unhandled_cuda_error = 1, invalid_argument = 4 };

struct Communicator {
  int ranks = 0, rank = 0, device = 0;
};

struct UniqueId {  // ncclUniqueId
  char bytes[128];
};

Result make(Communicator** out, int ranks, int rank) {
  *out = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) return invalid_argument;
  if (enter() != success) return unhandled_cuda_error;
  activate(current_device());
  *out = new Communicator{ranks, rank, current_device()};
  log_communicator(rank, ranks);
  return done;
}

size_t element(int type) {  // bytes, by ncclDataType_t
  constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < int(std::size(sizes)) ? sizes[type] : 1;
}

Result collective(const Communicator* communicator, Stream* stream) {
  if (!communicator) return invalid_argument;
  if (enter() != success || submit(stream) != success) return unhandled_cuda_error;
  count(Counter::collectives);
  return done;
}

// Leaves `bytes` bytes of what this rank sent in the receiver's memory, `times` times.
Result leave(const Communicator* communicator, Stream* stream, const void* sent, void* received, size_t bytes,
             int times = 1) {
  if (const Result result = collective(communicator, stream)) return result;
  const std::optional<std::string> own = written_contents(sent, bytes);
  if (!own) return done;
  std::string all;
  for (int i = 0; i < times; ++i) all += *own;
  put_result(received, all);
  return done;
}

template <class T>
void multiply(std::string& bytes, int by) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    value = T(value * T(by));
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

// The sum of what all ranks have, if each has the same: the other operations leave it as it is.
void sum(void* received, size_t bytes, int type, int operation, int ranks) {
  constexpr int add = 0;
  std::optional<std::string> own = operation == add ? written_contents(received, bytes) : std::nullopt;
  if (!own) return;
  switch (type) {
    case 2: multiply<int32_t>(*own, ranks); break;
    case 4: multiply<int64_t>(*own, ranks); break;
    case 7: multiply<float>(*own, ranks); break;
    case 8: multiply<double>(*own, ranks); break;
    default: return;
  }
  put_result(received, *own);
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
  *id = {};  // all communicators are alike
  return done;
}
METAPROF_CUDA Result ncclCommGetUniqueId(Communicator*, UniqueId* id) { return ncclGetUniqueId(id); }

METAPROF_CUDA Result ncclCommInitRank(Communicator** out, int ranks, UniqueId, int rank) {
  return make(out, ranks, rank);
}
METAPROF_CUDA Result ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId, int rank, void*) {
  return make(out, ranks, rank);
}
METAPROF_CUDA Result ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int, UniqueId*,
                                              void*) {
  return make(out, ranks, rank);
}
METAPROF_CUDA Result ncclCommInitAll(Communicator** out, int ranks, const int* devices) {
  for (int i = 0; i < ranks; ++i) {
    if (const Result result = make(&out[i], ranks, i)) return result;
    out[i]->device = devices ? devices[i] : i;
  }
  return done;
}
// Who else is in the new communicator is known to the others only: it is as large as the old one.
METAPROF_CUDA Result ncclCommSplit(Communicator* from, int color, int, Communicator** out, void*) {
  *out = nullptr;
  constexpr int nowhere = -1;  // NCCL_SPLIT_NOCOLOR
  return color == nowhere ? done : make(out, from->ranks, from->rank);
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

METAPROF_CUDA Result ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                                   Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element(type);
  if (const Result result = leave(communicator, stream, from, to, bytes)) return result;
  sum(to, bytes, type, operation, communicator->ranks);
  return done;
}
METAPROF_CUDA Result ncclReduce(const void* from, void* to, size_t count, int type, int operation, int root,
                                Communicator* communicator, Stream* stream) {
  if (!communicator || communicator->rank != root) return collective(communicator, stream);
  return ncclAllReduce(from, to, count, type, operation, communicator, stream);
}
METAPROF_CUDA Result ncclBroadcast(const void* from, void* to, size_t count, int type, int,
                                   Communicator* communicator, Stream* stream) {
  return leave(communicator, stream, from, to, count * element(type));
}
METAPROF_CUDA Result ncclBcast(void* buffer, size_t count, int type, int, Communicator* communicator,
                               Stream* stream) {
  return leave(communicator, stream, buffer, buffer, count * element(type));
}
METAPROF_CUDA Result ncclAllGather(const void* from, void* to, size_t count, int type,
                                   Communicator* communicator, Stream* stream) {
  return leave(communicator, stream, from, to, count * element(type), communicator ? communicator->ranks : 0);
}
METAPROF_CUDA Result ncclReduceScatter(const void*, void*, size_t, int, int, Communicator* communicator,
                                       Stream* stream) {
  return collective(communicator, stream);
}
METAPROF_CUDA Result ncclAlltoAll(const void*, void*, size_t, int, Communicator* communicator,
                                  Stream* stream) {
  return collective(communicator, stream);
}
METAPROF_CUDA Result ncclGather(const void*, void*, size_t, int, int, Communicator* communicator,
                                Stream* stream) {
  return collective(communicator, stream);
}
METAPROF_CUDA Result ncclScatter(const void*, void*, size_t, int, int, Communicator* communicator,
                                 Stream* stream) {
  return collective(communicator, stream);
}
METAPROF_CUDA Result ncclSend(const void*, size_t, int, int, Communicator* communicator, Stream* stream) {
  return collective(communicator, stream);
}
METAPROF_CUDA Result ncclRecv(void*, size_t, int, int, Communicator* communicator, Stream* stream) {
  return collective(communicator, stream);
}
