#pragma once
// A device described in a JSON file: what `--device FILE.json` reads.
//
//   {"like": "h100", "name": "h100-40", "title": "half of an H100", "memory": 42949672960}
//
// `like` names a built-in device that says what the file leaves out; without it `type` ("cuda" or "cpu") and
// `memory` must be there. Keys are the fields of Hardware and the versions in Libraries, with their units; any
// other key is an error. "measured" holds what `metaprof measure` found besides.

#include <string>

#include "meta/platform/measured_rates.h"
#include "meta/platform/platform.h"

namespace metaprof {

/// Errors: no such file, not JSON, an unknown key, a value of the wrong type or out of its range.
Platform read_device_file(const std::string& path);

/// What the file says under "measured", as `metaprof measure` writes it. Errors: as above.
MeasuredRates read_measured_rates(const std::string& path);

}  // namespace metaprof
