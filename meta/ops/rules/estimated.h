#pragma once
// Memory whose size a closed library alone knows, and which was not asked.

#include "meta/session/session.h"

namespace metaprof {

/// Its size is an estimate: reports name it.
inline Ref<Storage> estimated(Session& session, Ref<Storage> storage) {
  if (storage) session.trace.storages[storage->id].estimated = true;
  return storage;
}

}  // namespace metaprof
