#pragma once
// What a run asks of one device's allocator, and nothing else of the run: read once, replayed for as many
// allocators as there are devices and settings to compare.

#include <cstdint>
#include <span>
#include <vector>

#include "core/device.h"
#include "core/plain_vector.h"
#include "profiler/storages/cursor.h"

namespace metaprof {

struct Request {
  enum class Kind : uint8_t {
    allocate,       ///< `bytes`, for the storage `slot`
    free,           ///< what is in `slot`
    record_stream,  ///< `stream` uses it, too
    empty_cache,    ///< what is cached goes back to the device
    begin_part,     ///< of the step plan; `slot`: index into Requests::parts
    end_part        ///< what follows, up to the next part, belongs to none
  };
  Kind kind;
  uint16_t stream = 0;
  uint32_t slot = 0;
  uint32_t event = 0;             ///< index of the event that it comes from
  uint32_t size_of_platform = 0;  ///< of the storage (StorageRecord)
  int64_t bytes = 0;
};

struct Requests {
  PlainVector<Request> list;
  std::vector<StepPart> parts;
  uint32_t slots = 0;  ///< every slot of the list is smaller
};

/// `events`: those of `trace`, or others that speak of its storages.
Requests requests_of(const Trace& trace, std::span<const Event> events, Device device);

/// Whether both ask for the same in the same order, whatever their slots are called: an allocator does the same for both.
bool ask_for_the_same(const Requests& one, const Requests& other);

/// Adds the last step's requests again, as further steps: for who knows that a step leaves everything as it found
/// it, but for tensors that it replaces by their like. Errors: this step replaces what is not alike.
void repeat_last_step(Requests& requests, int times);

}  // namespace metaprof
