#pragma once

#include <string_view>

#include "meta/core/units.h"

namespace metaprof {

/// "40GiB", "1500 MiB", "80e9", "150121480192": a number and a unit (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB;
/// none: bytes). Errors: anything else, nothing at all, more than 2^50 bytes.
Bytes parse_size(std::string_view text);

}  // namespace metaprof
