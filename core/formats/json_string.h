#pragma once
// JSON written piece by piece, for reports of many thousand events.

#include <string>
#include <string_view>

namespace metaprof {

/// The text in quotes, made plain first (shown). `<` is escaped, so that it may stand in an HTML page.
std::string json_string(std::string_view text);

}  // namespace metaprof
