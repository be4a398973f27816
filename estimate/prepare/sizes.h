#pragma once

#include <string_view>

#include "core/units.h"

namespace metaprof {

/// "40GiB", "1500 MiB", "80e9", "150121480192": a number and a unit (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB;
/// none, from 1 MiB on: bytes). Errors: anything else, nothing at all, more than 2^50 bytes.
Bytes parse_size(std::string_view text);

/// "1%", "0.5 %", "0.01": a share of a whole, at least 0. Errors, with the option's name: anything else.
double parse_share(std::string_view text, std::string_view option);

}  // namespace metaprof
