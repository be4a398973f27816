#pragma once
// A whole file as a text.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace metaprof {

/// The file "-" is the standard input, to its end. `most`: bytes; `what`: "a device profile", for messages. Errors, each with the path: there is no such file,
/// it is not a regular one, it is too large, it cannot be read, the standard input is empty.
std::string read_file(const std::filesystem::path& path, uintmax_t most, std::string_view what);

}  // namespace metaprof
