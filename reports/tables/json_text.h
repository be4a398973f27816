#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace metaprof {

/// JSON as reports write it: indented, one line feed at the end, and nothing that a terminal would obey.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace metaprof
