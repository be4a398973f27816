#pragma once
// All operators. Each family is a folder, whose list is its family.h; `all.cpp` is the list of families.

#include "meta/op/registry.h"
#include "meta/session/session.h"

namespace metaprof {

/// The registry of all operators; made once, never changed.
const Registry& standard_registry();

/// A session that knows all operators and has its layers.
std::unique_ptr<Session> make_session(const Platform& platform);

}  // namespace metaprof
