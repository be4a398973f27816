#pragma once

#include <fmt/core.h>

#include <string>

namespace metaprof {

/// `out` continues with `format` and its arguments.
void append_formatted(std::string& out, fmt::string_view format, fmt::format_args args);

/// The same, checked while it compiles. fmt's own format_to would compile all of its formatting again in each
/// file that calls it, four seconds a file.
template <typename... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  append_formatted(out, format, fmt::make_format_args(args...));
}

}  // namespace metaprof
