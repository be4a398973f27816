#pragma once

#include "program/config/families.h"

namespace metaprof::configs {

/// deberta-v2 and v3.
Program deberta_v2_program(const ConfigModel& model);

}  // namespace metaprof::configs
