// Copies and fills. The bytes are moved at once; when a stream has done it the clock says.

#include "capture/emulator/machine/memory/copies.h"

#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/streams/streams.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

namespace {

// The device must be there, and the stream must take work.
Error begin(Stream* stream, NodeKind kind = NodeKind::copy, const Cost& cost = {}) {
  if (const Error error = use_device()) return error;
  return submit(stream, kind, cost);
}
Error begin_copy(Stream* stream, const void* to, const void* from, size_t bytes) {
  return begin(stream, NodeKind::copy, cost_of_copy(to, from, bytes));
}

// A call that has no stream returns when the legacy stream is done.
Error done(Error error) { return result(error == success ? finish(nullptr) : error); }

// cudaMemcpyKind: between host and device in four directions, and one that is told by the addresses.
Error check_direction(int kind) { return kind >= 0 && kind <= 4 ? success : invalid_direction; }

}  // namespace

METAPROF_RUNTIME cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  if (const Error error = begin_copy(nullptr, to, from, bytes)) return fail(error);
  if (const Error error = check_direction(kind)) return fail(error);
  return done(copy_bytes(to, from, bytes));
}
METAPROF_RUNTIME cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Stream* stream) {
  if (const Error error = begin_copy(stream, to, from, bytes)) return fail(error);
  if (const Error error = check_direction(kind)) return fail(error);
  if (const Error error = copy_bytes(to, from, bytes)) return fail(error);
  return result(host_waits(to, from) ? finish(stream) : success);
}
METAPROF_RUNTIME cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  if (const Error error = begin_copy(nullptr, to, from, bytes)) return fail(error);
  return done(copy_bytes(to, from, bytes));
}
METAPROF_RUNTIME cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, Stream* stream) {
  if (const Error error = begin_copy(stream, to, from, bytes)) return fail(error);
  return result(copy_bytes(to, from, bytes));
}
METAPROF_RUNTIME cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, int kind) {
  if (const Error error = begin_copy(nullptr, to, from, width * height)) return fail(error);
  if (const Error error = check_direction(kind)) return fail(error);
  return done(copy_rows(to, to_pitch, from, from_pitch, width, height));
}
METAPROF_RUNTIME cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, int kind, Stream* stream) {
  if (const Error error = begin_copy(stream, to, from, width * height)) return fail(error);
  if (const Error error = check_direction(kind)) return fail(error);
  return result(copy_rows(to, to_pitch, from, from_pitch, width, height));
}
// Several copies in one call (foreach copies of newer versions).
METAPROF_RUNTIME cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* bytes,
                                      size_t count) {
  if (const Error error = use_device()) return fail(error);
  for (size_t i = 0; i < count; ++i)
    if (const Error error = copy_bytes(to[i], from[i], bytes[i])) return fail(error);
  return success;
}

METAPROF_RUNTIME cudaMemset(void* to, int value, size_t bytes) {
  if (const Error error = begin(nullptr, NodeKind::fill, cost_of_fill(to, bytes))) return fail(error);
  return done(fill_bytes(to, value, bytes));
}
METAPROF_RUNTIME cudaMemsetAsync(void* to, int value, size_t bytes, Stream* stream) {
  if (const Error error = begin(stream, NodeKind::fill, cost_of_fill(to, bytes))) return fail(error);
  return result(fill_bytes(to, value, bytes));
}
METAPROF_RUNTIME cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                   Stream* stream) {
  if (const Error error = begin(stream, NodeKind::fill, cost_of_fill(to, width * height))) return fail(error);
  for (size_t row = 0; row < height; ++row)
    if (const Error error = fill_bytes(static_cast<char*>(to) + row * pitch, value, width))
      return fail(error);
  return success;
}

// Variables of device code hold nothing.
METAPROF_RUNTIME cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, int) {
  return result(use_device());
}
METAPROF_RUNTIME cudaMemcpyToSymbolAsync(const void*, const void*, size_t, size_t, int, Stream* stream) {
  return result(begin(stream));
}
