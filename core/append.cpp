#include "core/append.h"

#include <fmt/format.h>

#include <iterator>

namespace metaprof {

void append_formatted(std::string& out, fmt::string_view format, fmt::format_args args) {
  fmt::vformat_to(std::back_inserter(out), format, args);
}

}  // namespace metaprof
