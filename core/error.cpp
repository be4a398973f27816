#include "core/error.h"

#include <fmt/format.h>

#include "core/shown_text.h"

namespace metaprof {

Error::Error(std::string_view message) : std::runtime_error(shown_message(message)) {}

void throw_error(fmt::string_view format, fmt::format_args args) { throw Error(fmt::vformat(format, args)); }

}  // namespace metaprof
