#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace metaprof {

// A failure that the user sees and can act on: bad input, an unsupported request, a limit that was passed.
// The message is one line that says what is wrong, where, and what was expected or can be done:
//
//   addmm: mat1 and mat2 must agree on the inner size; got [8,15] and [32,16] (model.layers.0.mlp.up_proj)
//
// The command line prints it and exits with code 2. A mistake of this program itself is no Error but an
// assert.
class Error : public std::runtime_error {
 public:
  // Control characters are written as escapes, so that text quoted from a file keeps the message one line.
  explicit Error(std::string_view message);
};

// Throws Error with a message formatted by fmt.
[[noreturn]] void throw_error(fmt::string_view format, fmt::format_args args);

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw_error(format, fmt::make_format_args(args...));
}

}  // namespace metaprof
