#pragma once
// Records of an operator that changed: one for the versions before the change, one for those since.

#include "meta/op/record.h"

namespace metaprof {

/// The same record, of this version and those after it, …
constexpr Op since(FrameworkVersion version, Op op) {
  op.facts.versions.since = version;
  return op;
}
/// … of those before this version.
constexpr Op before(FrameworkVersion version, Op op) {
  op.facts.versions.before = version;
  return op;
}

}  // namespace metaprof
