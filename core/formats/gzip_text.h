#pragma once

#include <string>
#include <string_view>

namespace metaprof {

/// What a gzip file of the text holds, as small as zlib makes it. Equal texts give equal files.
std::string gzipped(std::string_view text);

}  // namespace metaprof
