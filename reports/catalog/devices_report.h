#pragma once
// The devices that are known: what `metaprof devices` shows.

#include <string>
#include <vector>

#include "core/units.h"

namespace metaprof {

struct DeviceRow {
  std::string name, title;
  int sm = 0;  ///< compute capability, 90 is 9.0; 0: it has none
  int multiprocessors = 0;
  Bytes memory;                         ///< as the driver reports it
  double bandwidth = 0;                 ///< bytes per second
  double flops_f32 = 0, flops_f16 = 0;  ///< per second, dense
};

std::string devices_text(const std::vector<DeviceRow>& rows, size_t width = 0);
/// {"schema": "metaprof.devices", "schema_version": 1, "devices": [{"name", "title", …}]}
std::string devices_json(const std::vector<DeviceRow>& rows);

}  // namespace metaprof
