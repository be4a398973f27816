#pragma once
// All operators. Each family is a folder, whose list is its family.h; `all.cpp` is the list of families.

#include "meta/op/registry.h"
#include "meta/session/session.h"

namespace metaprof {

/// The operators of a version of the framework; made once for all versions that have the same records, never changed.
const Registry& registry_for(FrameworkVersion version);
/// Those of the version that holds where nothing tells another: for readers, which ask for names and facts.
const Registry& standard_registry();

/// A session that knows all operators and has its layers.
std::unique_ptr<Session> make_session(const Platform& platform);

}  // namespace metaprof
