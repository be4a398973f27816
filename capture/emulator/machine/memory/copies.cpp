#include "capture/emulator/machine/memory/copies.h"

#include <atomic>
#include <cstring>

#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/memory/contents.h"
#include "capture/emulator/machine/memory/memory.h"

namespace metaprof::emulator {
namespace {

std::atomic<void (*)(void*, const void*, uint64_t)> reader_of_copies = nullptr;
std::atomic<void (*)(const void*, const void*, uint64_t)> writer_of_copies = nullptr;

// Both ends of a stretch of device memory are held by somebody.
bool is_held(const void* address, size_t bytes) {
  return find_range(address) && (bytes <= 1 || find_range(static_cast<const char*>(address) + bytes - 1));
}

}  // namespace

Error copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return success;
  if (!to || !from) return invalid_value;
  const bool to_device = is_device_address(to), from_device = is_device_address(from);
  if ((to_device && !is_held(to, bytes)) || (from_device && !is_held(from, bytes))) return invalid_value;
  if (to_device) {
    if (from_device) return copy_contents(to, from, bytes), success;
    count(Counter::writes);
    count(Counter::written_bytes, bytes);
    remember_written(to, from, bytes);
    if (auto* const writer = writer_of_copies.load()) writer(to, from, bytes);
  } else if (from_device) {
    count(Counter::reads);
    count(Counter::read_bytes, bytes);
    read_contents(to, from, bytes);
    if (auto* const reader = reader_of_copies.load()) reader(to, from, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
  return success;
}

Error fill_bytes(void* to, int value, size_t bytes) {
  if (bytes == 0) return success;
  if (!to) return invalid_value;
  if (is_device_address(to)) {
    forget_contents(to, bytes);
    return is_held(to, bytes) ? success : invalid_value;
  }
  std::memset(to, value, bytes);
  return success;
}

bool host_waits(const void* to, const void* from) { return is_device_address(from) && !find_range(to); }

Cost cost_of_copy(const void* to, const void* from, size_t bytes) {
  const int ends = int(is_device_address(to)) + int(is_device_address(from));
  const auto n = static_cast<double>(bytes);
  return {.moved = ends * n, .over_link = ends == 1 ? n : 0};
}

Cost cost_of_fill(const void* to, size_t bytes) {
  return {.moved = is_device_address(to) ? static_cast<double>(bytes) : 0};
}

Error copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height) {
  if (width > to_pitch || width > from_pitch) return invalid_value;
  for (size_t row = 0; row < height; ++row)
    if (const Error error = copy_bytes(static_cast<char*>(to) + row * to_pitch,
                                       static_cast<const char*>(from) + row * from_pitch, width))
      return error;
  return success;
}

}  // namespace metaprof::emulator

void metaprof_emulator_on_read(void (*reader)(void* host, const void* device, uint64_t bytes)) {
  metaprof::emulator::reader_of_copies = reader;
}
void metaprof_emulator_on_write(void (*writer)(const void* device, const void* host, uint64_t bytes)) {
  metaprof::emulator::writer_of_copies = writer;
}
