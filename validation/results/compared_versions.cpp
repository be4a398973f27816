#include "validation/results/compared_versions.h"

namespace metaprof {
namespace {

constexpr ComparedVersion kVersions[] = {
#include "validation/results/compared_versions.inc"
};

}  // namespace

std::span<const ComparedVersion> compared_versions() { return kVersions; }

}  // namespace metaprof
