#pragma once
// What a trace says about memory at its end.

#include <map>

#include "meta/session/session.h"

namespace metaprof {

/// By how much this event changes the bytes that are alive on the session's device.
inline int64_t live_change(const Session& session, const Event& event) {
  if (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free) return 0;
  const StorageRecord& storage = session.trace.storages[event.id];
  if (storage.device.type != session.device.type) return 0;
  return event.kind == Event::Kind::alloc ? storage.bytes.count : -storage.bytes.count;
}

/// Bytes that were asked for and not given back on the session's device.
inline int64_t live_bytes(const Session& session) {
  int64_t live = 0;
  for (const Event& event : session.trace.events) live += live_change(session, event);
  return live;
}

/// The most of them at or after the event with this index.
inline int64_t peak_bytes(const Session& session, size_t begin) {
  int64_t live = 0, peak = 0;
  for (size_t i = 0; i < session.trace.events.size(); ++i) {
    live += live_change(session, session.trace.events[i]);
    if (i + 1 >= begin) peak = std::max(peak, live);
  }
  return peak;
}

/// How many saved tensors look into each storage.
inline std::map<uint32_t, int> saved_tensors(const Session& session) {
  std::map<uint32_t, int> saved;
  for (const Event& event : session.trace.events) {
    if (event.kind == Event::Kind::save) ++saved[event.id];
    if (event.kind == Event::Kind::release) --saved[event.id];
  }
  return saved;
}

/// Bytes of the storages that some node keeps for backward, each once.
inline int64_t saved_bytes(const Session& session) {
  int64_t bytes = 0;
  for (auto [storage, count] : saved_tensors(session))
    if (count > 0 && session.trace.storages[storage].device.type == session.device.type)
      bytes += session.trace.storages[storage].bytes.count;
  return bytes;
}

}  // namespace metaprof
